// What lies behind the timeline: published policies, other cards, several jobs on one card.

// heads: [text, is it a name]; rows: { cells, out: does not fit, ours }.
function tableOf(caption, heads, rows) {
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, make("table", {},
    make("caption", { class: "sr" }, caption),
    make("thead", {}, make("tr", {}, ...heads.map(([text, name]) => make("th", { scope: "col", class: name ? "t" : "" }, text)))),
    make("tbody", {}, ...rows.map(r => make("tr", { class: `${r.out ? "out" : ""} ${r.ours ? "ours" : ""}` }, ...r.cells.map((c, i) => make(i ? "td" : "th", { class: heads[i][1] ? "t" : "", scope: i ? null : "row" }, c)))))));
}

// A slowdown as a bar beside its number, so that a column can be read at a glance.
function slowCell(step, without, most) {
  const i = make("i", { class: "slow" });
  i.style.width = `${Math.max(1, 100 * Math.min(1, Math.max(0, step / without - 1) / most))}%`;
  return make("span", { class: "withbar" }, make("span", {}, slowerText(step, without)), make("span", { class: "rail" }, i));
}

const tabHead = (title, note) => make("div", { class: "head" }, make("h2", {}, title), make("p", { class: "note" }, note));

function showPolicies(json, budget) {
  const rows = json.rows.map(r => ({ ...r, c: r.fits ? r.predicted : null })).sort((a, b) => (b.fits - a.fits) || (a.fits ? a.c.step_ns - b.c.step_ns : a.reached_bytes - b.reached_bytes));
  const most = Math.max(0.1, ...rows.filter(r => r.fits).map(r => r.c.step_ns / r.c.baseline_ns - 1));
  at("policies").replaceChildren(tabHead("Policies at this budget", `Every published policy that ferry has, in ${bytesText(budget)}, on the same machine model.`),
    tableOf("policies", [["policy", true], ["step"], ["slower"], ["gap"], ["device"], ["host"], ["out"], ["in"]], rows.map(r => ({
      out: !r.fits, ours: r.label.startsWith("ferry"), cells: [r.label, ...(r.fits
        ? [timeText(r.c.step_ns), slowCell(r.c.step_ns, r.c.baseline_ns, most), shareText(r.gap), bytesText(r.c.peak_bytes), bytesText(r.c.host_peak_bytes), bytesText(r.c.d2h_bytes), bytesText(r.c.h2d_bytes)]
        : ["does not fit", "", "", r.reached_bytes ? `reaches ${bytesText(r.reached_bytes)}` : "", "", "", ""])] }))));
}

function showCards(json, own, choose) {
  const rows = json.rows.map(r => ({ ...r, name: json.grid.devices[r.device], assumed: json.assumed[r.device] ?? "" }))
    .sort((a, b) => (b.answer === "plan") - (a.answer === "plan") || (a.answer === "plan" ? a.predicted.step_ns - b.predicted.step_ns : 0));
  const most = Math.max(0.1, ...rows.filter(r => r.answer === "plan").map(r => r.predicted.step_ns / r.baseline_ns - 1));
  at("cards").replaceChildren(tabHead("The same step on other cards", "Swaps alone, at the same budget. Times of ops are carried over by the cards' rooflines; hover a name for what was assumed."),
    tableOf("cards", [["card", true], ["step"], ["slower"], ["without a limit"], ["link"], ["budget"], ["host"]], rows.map(r => ({
      out: r.answer !== "plan", ours: r.name === own, cells: [make("button", { type: "button", class: "link", title: r.assumed, onclick: () => choose(r.name) }, r.name), ...(r.answer === "plan"
        ? [timeText(r.predicted.step_ns), slowCell(r.predicted.step_ns, r.baseline_ns, most), timeText(r.baseline_ns), rateText(r.link_bytes_per_s), bytesText(r.budget_bytes), bytesText(r.predicted.host_peak_bytes)]
        : ["does not fit", "", timeText(r.baseline_ns), rateText(r.link_bytes_per_s), bytesText(r.budget_bytes), ""])] }))));
}

// What cards of a host share, in words.
function hostText(h) {
  const groups = h.groups.length ? h.groups.map(g => `${g.cards.length} cards of ${g.name}: ${rateText(g.d2h_bytes_per_s)} out or ${rateText(g.h2d_bytes_per_s)} in`) : ["each card has a link of its own"];
  return `${h.cards} × ${h.device}; ${[...new Set(groups.map(t => t.replace(/(cpu|switch) \d+/, "a $1")))].join("; ")}; ${bytesText(h.pinned_bytes)} to pin.`;
}

// draw: shows the lanes of that number of ranks.
function showRanks(json, into, draw) {
  const most = Math.max(0.1, ...json.rows.filter(r => !r.why).map(r => Math.max(r.step_ns, r.alone_step_ns) / json.baseline_ns - 1));
  into.replaceChildren(tableOf("ranks", [["ranks", true], ["step"], ["slower"], ["by the plan for one card"], ["no plans are below"], ["planned", true], ["pinned, all ranks"]], json.rows.map(r => ({
    out: r.why, cells: [r.why ? countText(r.ranks, "rank", "ranks") : make("button", { type: "button", class: "link", title: "Show their lanes", onclick: () => draw(r.ranks) }, countText(r.ranks, "rank", "ranks")), ...(r.why ? ["no plan", "", "", "", r.why, ""]
      : [timeText(r.step_ns), slowCell(r.step_ns, json.baseline_ns, most), slowCell(r.alone_step_ns, json.baseline_ns, most), timeText(r.lower_bound_ns), wayWords[r.way] ?? r.way, bytesText(r.pinned_bytes)])] }))),
    make("p", { class: "note below" }, `${timeText(json.baseline_ns)} without a limit, on ${json.device}: ${json.assumed}.`),
    make("div", { id: "ranks-lanes" }));
}

// One step of all ranks, as the service has drawn it. own: the card that the times are of, where it is not the host's.
function showLanes(it, ranks, own) {
  const picture = `${it.links.result}?format=svg`, step = timeText(it.result.step_ns);
  at("ranks-lanes").replaceChildren(make("h3", {}, `One step of ${countText(ranks, "rank", "ranks")}: ${step}`),
    make("p", { class: "note" }, `Lanes of all ranks, and under them what each shared link carries.${own ? ` Ops take what they take on the trace's own ${own}.` : ""}`),
    make("img", { class: "lanes", src: picture, alt: `lanes of ${countText(ranks, "rank", "ranks")} in a step of ${step}, and the load of the links that they share` }));
}
const wayWords = { "alone": "as for one card alone", "one way": "for links that all use one way", "both ways": "for links that all use both ways", "between": "between alone and both ways", "by turns": "two plans, by turns" };

function showPack(json, exit) {
  const words = exit === 0 ? "All have a place." : exit === 4 ? "No place for all was found before the limit." : "Not all have a place.";
  at("pack-answer").replaceChildren(make("p", {}, make("strong", {}, words)), tableOf("jobs", [["job", true], ["memory"], ["step"], ["slower"], ["why", true]], json.jobs.map(j => ({
    out: !j.predicted, cells: [j.name, ...(j.predicted ? [bytesText(j.budget_bytes), timeText(j.predicted.step_ns), slowerText(j.predicted.step_ns, j.baseline_ns), ""] : ["no place", "", "", j.why ?? ""])] }))));
}

const waiting = (id, title, text) => at(id).replaceChildren(tabHead(title, ""), make("p", { class: "empty", id: `${id}-state`, role: "status" }, text));

// One of the tabs is shown; arrow keys go from one to the next.
function wireTabs(onTab) {
  const tabs = [...document.querySelectorAll("#tablist [role=tab]")];
  const select = tab => {
    for (const t of tabs) {
      const is = t === tab;
      t.setAttribute("aria-selected", is);
      t.tabIndex = is ? 0 : -1;
      at(t.getAttribute("aria-controls")).hidden = !is;
    }
    onTab(tab.getAttribute("aria-controls"));
  };
  tabs.forEach((tab, i) => {
    tab.onclick = () => select(tab);
    tab.addEventListener("keydown", e => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key], to = by ? tabs[(i + by + tabs.length) % tabs.length] : e.key === "Home" ? tabs[0] : e.key === "End" ? tabs[tabs.length - 1] : null;
      if (!to) return;
      e.preventDefault();
      to.focus();
      select(to);
    });
  });
  return name => select(at(`tab-${name}`));
}
