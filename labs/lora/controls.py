from labs.core.lab import Control


def _c(name, **k):
    return Control(name, "", (), **k)


CONTROLS = (
    _c("alpha_without_rank", swap={"scale": "alpha_itself"}),
    _c("rs_scale_confused", lie={"scaling": "rslora"}),
    _c("both_zero", swap={"initialize_a": "zeros_a"}),
    _c("both_random", swap={"initialize_b": "normal_b"}),
    _c("kaiming_fan_in_rank", swap={"initialize_a": "kaiming_by_rank"}),
    _c("kaiming_layout", swap={"framework_kaiming": "kaiming_on_our_layout"}),
    _c("branch_severed", swap={"linear": "linear_severed"}),
    _c("input_gradient_missing", swap={"linear": "linear_input_detached"}),
    _c("backward_without_scale", swap={"linear": "linear_backward_unscaled"}),
    _c("detach_forgotten", swap={"linear_detached": "linear_input_attached"}),
    _c("loss_unweighted", swap={"cross_entropy": "cross_entropy_unweighted"}),
    _c("squared_error_unweighted", swap={"squared_error": "squared_error_unweighted"}, at={"loss": "squared_error"}),
    _c("base_trained", swap={"trainable": "everything_trainable"}),
    _c("one_learning_rate", lie={"lr_b": 0.02}),
    _c("checkpoint_cast", swap={"save": "save_as_float32", "load": "load_as_float64"}),
    _c("merge_without_scale", swap={"merge": "merge_unscaled"}),
    _c("merge_transposed", swap={"merge": "merge_transposed"}, at={"d_out": 8}),
    _c("merge_twice", swap={"merge": "merge_twice"}),
    _c("unmerge_uncast", swap={"unmerge": "unmerge_uncast"}),
    _c("requantize_wrong_base", swap={"merge_quantized": "merge_into_original"}),
    _c("requantize_loses_delta", swap={"survival": "survival_as_merged"}),
    _c("group_axis", swap={"quantize": "quantize_other_axis", "dequantize": "dequantize_other_axis"}),
    _c("bracketing_dear", swap={"branch": "branch_dear"}),
)
