"use strict";
// What needs a script: filter, stepping, copying. Without it all of the page is there to read.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const root = document.documentElement;
  root.classList.add("on");

  // filter: every word has to be in a row, a card or a known fault
  const query = document.getElementById("q");
  const only = document.getElementById("only");
  const hits = document.getElementById("hits");
  const rows = all(".card, .checks tbody tr:not(.group)").map((element) => ({
    element,
    text: element.textContent.toLowerCase(),
    failed: element.matches(".card, .bad, .bad *"),
    counted: !element.matches(".card"),
  }));
  const filter = () => {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    const narrowed = words.length > 0 || only.checked;
    let shown = 0;
    for (const row of rows) {
      const fits = words.every((word) => row.text.includes(word)) && (row.failed || !only.checked);
      row.element.hidden = !fits;
      if (fits && row.counted) shown += 1;
    }
    for (const body of all(".checks tbody")) {
      const lines = all("tr:not(.group)", body);
      body.hidden = lines.length > 0 && lines.every((line) => line.hidden);
    }
    for (const fold of all(".fold")) {
      const table = fold.querySelector(".checks");
      fold.hidden = narrowed && (!table || all("tbody", table).every((body) => body.hidden));
    }
    if (narrowed) for (const more of all(".more")) more.open = true;
    for (const walk of all(".walk")) walk.hidden = narrowed;
    hits.value = narrowed ? `${shown} of ${rows.filter((row) => row.counted).length}` : "";
  };
  query.addEventListener("input", filter);
  only.addEventListener("change", filter);

  // the walk: one node at a time
  const walks = all(".walk").map((element) => {
    const stops = all(".stop", element);
    const marks = new Map(all(".graph a", element).map((mark) => [mark.getAttribute("href").slice(1), mark]));
    const place = element.querySelector(".pager output");
    const graph = element.querySelector(".graph");
    const buttons = [element.querySelector(".prev"), element.querySelector(".next")];
    const walk = { element, stops, at: 0 };
    walk.show = (index) => {
      walk.at = Math.max(0, Math.min(stops.length - 1, index));
      stops.forEach((stop, i) => {
        stop.classList.toggle("here", i === walk.at);
        const mark = marks.get(stop.id);
        mark.classList.toggle("here", i === walk.at);
        mark.classList.toggle("seen", i < walk.at);
        if (i === walk.at) {
          const [box, frame] = [mark.getBoundingClientRect(), graph.getBoundingClientRect()];
          graph.scrollTop += box.top + box.height / 2 - frame.top - frame.height / 2;
        }
        if (i === walk.at) mark.setAttribute("aria-current", "step");
        else mark.removeAttribute("aria-current");
      });
      place.value = `${walk.at + 1} of ${stops.length}: ${stops[walk.at].dataset.name}`;
      buttons[0].disabled = walk.at === 0;
      buttons[1].disabled = walk.at === stops.length - 1;
    };
    buttons[0].addEventListener("click", () => walk.show(walk.at - 1));
    buttons[1].addEventListener("click", () => walk.show(walk.at + 1));
    element.addEventListener("click", (event) => {
      const link = event.target.closest("a");
      const index = link ? stops.findIndex((stop) => `#${stop.id}` === link.getAttribute("href")) : -1;
      if (index < 0) return;
      event.preventDefault();
      walk.show(index);
    });
    walk.show(0);
    return walk;
  });
  const inView = (walk) => {
    const box = walk.element.getBoundingClientRect();
    return !walk.element.hidden && box.top < innerHeight * 0.7 && box.bottom > innerHeight * 0.3;
  };

  // where a link leads, also when it was folded away or filtered out
  const follow = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    if (target.closest("[hidden]")) {
      query.value = "";
      only.checked = false;
      filter();
    }
    const fold = target.closest("details");
    if (fold) fold.open = true;
    for (const walk of walks) if (walk.stops.includes(target)) walk.show(walk.stops.indexOf(target));
    target.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  follow();

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input, textarea, select");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      query.focus();
    } else if (event.key === "Escape" && event.target === query) {
      query.value = "";
      filter();
      query.blur();
    } else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && !typing) {
      const walk = walks.find((one) => one.element.contains(event.target)) ?? walks.find(inView);
      if (!walk || event.target.closest("pre, .scroll")) return;
      event.preventDefault();
      walk.show(walk.at + (event.key === "ArrowRight" ? 1 : -1));
    }
  });

  for (const button of all(".copy")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "selected";
      }
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
  }

  // paper has no folds
  addEventListener("beforeprint", () => { for (const fold of all("details:not([open])")) { fold.open = true; fold.dataset.folded = ""; } });
  addEventListener("afterprint", () => { for (const fold of all("details[data-folded]")) { fold.open = false; delete fold.dataset.folded; } });
})();
