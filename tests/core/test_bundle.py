import copy
import json
from datetime import UTC, datetime

import pytest

from labs.core.bundle import DamagedBundle, open_draft, read_manifest, read_report
from labs.core.errors import RequestError
from labs.core.storage import stored

REPORT = {
    "schema": "framework-lab/report/1",
    "run": {"id": "0", "created": "", "command": ["lab"], "status": "failed", "exit_code": 1, "seconds": 1.0},
    "environment": {},
    "labs": [
        {
            "name": "lora", "lab": "lora", "title": "", "status": "failed", "seed": 0, "promised": 1,
            "narrowed": [], "failures": [], "seconds": {}, "peak_rss_bytes": {}, "loosened": [], "stages": [],
            "wiring": {"spoils": 0, "problems": []}, "checks": [], "controls": [],
        },
    ],
}  # fmt: skip


def bundle(out, report=REPORT):
    with open_draft(out, datetime.now(UTC)) as draft:
        draft.write("report.json", json.dumps(report))
        return draft.publish()


def test_a_report_is_read_back(tmp_path):
    assert read_report(bundle(tmp_path)) == REPORT


def test_latest_is_as_good_as_the_bundle(tmp_path):
    bundle(tmp_path)
    assert read_report(tmp_path / "latest") == REPORT


def changed(path, value):
    report = copy.deepcopy(REPORT)
    *parents, last = path
    place = report
    for key in parents:
        place = place[key]
    place[last] = value
    return report


WRONG = [
    (["schema"], "framework-lab/report/2", "schema is 'framework-lab/report/2', expected"),
    (["schema"], None, "schema is None, expected"),
    (["labs"], {}, "labs: got dict, expected list"),
    (["labs"], [3], r"labs\[0\]: got int, expected dict"),
    (["run"], {}, "run: id is missing"),
    (["labs", 0, "name"], "../../etc", ".* can't be the name"),
    (["labs", 0, "name"], "..", ".* can't be the name"),
    (["labs", 0, "narrowed"], [3], r"labs\[0\].narrowed\[0\]: got int, expected str"),
    (["run", "seconds"], "", r"run\.seconds: got '', expected a number, nan, inf, -inf"),
    (["labs", 0, "checks"], [{"name": "x"}], r"labs\[0\].checks\[0\]: kind is missing"),
    (["labs", 0, "controls"], [[]], r"labs\[0\].controls\[0\]: got list, expected dict"),
]


@pytest.mark.parametrize(("path", "value", "sentence"), WRONG)
def test_a_report_of_another_outline_is_named(tmp_path, path, value, sentence):
    made = bundle(tmp_path, changed(path, value))
    with pytest.raises(DamagedBundle, match=f"^report.json: {sentence}|^report.json.{sentence}"):
        read_report(made)


NOT_JSON = [
    (b"", "not valid JSON"),
    (b"{", "not valid JSON"),
    (b"[]", "got list, expected a JSON object"),
    (b"\xff\xfe", "not valid JSON"),
    (b"[" * 100_000, "nested too deeply"),
    (b'{"a":' * 100_000, "nested too deeply"),
    (b'{"a": 1, "a": 2}', "key 'a' twice"),
    (b'{"a": NaN}', "NaN is not JSON"),
    (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
]


@pytest.mark.parametrize("name", ["report.json", "manifest.json"])
@pytest.mark.parametrize(("data", "sentence"), NOT_JSON)
def test_what_is_not_a_json_object_is_a_sentence(tmp_path, name, data, sentence):
    made = bundle(tmp_path)
    (made / name).write_bytes(data)
    read = read_report if name == "report.json" else read_manifest
    with pytest.raises(DamagedBundle, match=f"^{name}: .*{sentence}"):
        read(made)


def test_a_file_too_large_to_be_a_report_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "JSON_LIMIT", 10)
    with pytest.raises(DamagedBundle, match="expected at most 10"):
        read_report(bundle(tmp_path))


def test_a_linked_report_is_not_followed(tmp_path):
    made = bundle(tmp_path)
    (made / "report.json").rename(tmp_path / "elsewhere.json")
    (made / "report.json").symlink_to("../elsewhere.json")
    with pytest.raises(DamagedBundle, match=r"report.json: a link"):
        read_report(made)


def test_what_is_no_bundle_is_a_wrong_request(tmp_path):
    (tmp_path / "file").touch()
    for name, sentence in (("gone", "no such folder"), ("file", "not a folder"), (".", "not a bundle")):
        with pytest.raises(RequestError, match=sentence):
            read_report(tmp_path / name)


def test_the_folder_of_bundles_is_no_bundle_and_points_at_the_latest(tmp_path):
    (tmp_path / "latest").mkdir()
    (tmp_path / "latest" / "report.json").touch()
    with pytest.raises(RequestError, match=r"not a bundle: it has no report.json; did you mean .*/latest\?"):
        read_report(tmp_path)


ENTRY = {"path": "report.json", "size": 1, "sha256": "0" * 64}
ENTRIES = [
    ({**ENTRY, "path": "/etc/hostname"}, "leads out"),
    ({**ENTRY, "path": "../x"}, "leads out"),
    ({**ENTRY, "path": "a/../../x"}, "leads out"),
    ({**ENTRY, "path": ""}, "leads out"),
    ({**ENTRY, "path": "manifest.json"}, "to itself"),
    ({**ENTRY, "size": -1}, "not a size"),
    ({**ENTRY, "size": "1"}, "an entry is not"),
    ({**ENTRY, "sha256": "0"}, "not a size and a sha256"),
    ({**ENTRY, "more": 1}, "an entry is not"),
    ([], "an entry is not"),
]


@pytest.mark.parametrize(("entry", "sentence"), ENTRIES)
def test_a_manifest_entry_that_no_run_writes_is_refused(tmp_path, entry, sentence):
    made = bundle(tmp_path)
    (made / "manifest.json").write_text(json.dumps({"schema": "framework-lab/manifest/1", "files": [entry]}))
    with pytest.raises(DamagedBundle, match=f"^manifest.json: .*{sentence}"):
        read_manifest(made)


def test_a_file_listed_twice_is_refused(tmp_path):
    made = bundle(tmp_path)
    (made / "manifest.json").write_text(json.dumps({"schema": "framework-lab/manifest/1", "files": [ENTRY, ENTRY]}))
    with pytest.raises(DamagedBundle, match="listed twice"):
        read_manifest(made)


@pytest.mark.parametrize("manifest", [{"schema": "other", "files": []}, {"schema": "framework-lab/manifest/1"}])
def test_a_manifest_of_another_outline_is_refused(tmp_path, manifest):
    made = bundle(tmp_path)
    (made / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DamagedBundle, match=r"^manifest.json: (schema|files)"):
        read_manifest(made)
