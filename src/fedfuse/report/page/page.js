// Adds to a page that is complete without it: one axis at a time, and which row is ahead within a budget of one's own.
// A newer page of the same runs is taken over by fedfuseReport.refresh(html); what the reader has chosen stays.
(() => {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const STEPS = 400;
  const chosen = new Map(); // by the name of a control, what the reader has chosen

  const make = (name, attributes = {}, text = "") => {
    const node = name === "line" || name === "rect" ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    return node;
  };
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const points = (share, digits = 1) => (100 * share).toFixed(digits);

  // Half of the 95 % interval of a mean; nothing is known of a single value.
  const reach = (values, quantiles) => {
    if (values.length < 2) return null;
    const centre = mean(values);
    const variance = values.reduce((sum, value) => sum + (value - centre) ** 2, 0) / (values.length - 1);
    return (quantiles[values.length] ?? 1.96) * Math.sqrt(variance / values.length);
  };

  // What a row had reached within a budget: of every seed the last round that was measured by then.
  const reached = (row, axis, budget) => {
    const found = row.seeds.map((one) => {
      const spent = axis === "rounds" ? one.rounds : one.spent[axis];
      let place = -1;
      while (spent && place + 1 < spent.length && spent[place + 1] <= budget) place += 1;
      return place < 0 ? null : { seed: one.seed, value: one.values[place], round: one.rounds[place] };
    });
    return found.length && found.every(Boolean) ? found : null;
  };

  const amount = (value, about) => {
    const number = (about.factor * value).toLocaleString("en", { maximumFractionDigits: about.digits });
    return `${number} ${about.unit || (number === "1" ? "round" : "rounds")}`;
  };

  const percent = (found, quantiles) => {
    const values = found.map((one) => one.value);
    const half = reach(values, quantiles);
    return `${points(mean(values))}${half === null ? "" : ` ± ${points(half)}`}`;
  };

  const inRounds = (found) => {
    const rounds = found.map((one) => one.round);
    const low = Math.min(...rounds), high = Math.max(...rounds);
    return low === high ? `round ${low}` : `rounds ${low} to ${high}`;
  };

  // Seed by seed, how far the second is behind the first.
  const apart = (first, second, quantiles) => {
    const theirs = new Map(second.map((one) => [one.seed, one.value]));
    const differences = first.filter((one) => theirs.has(one.seed)).map((one) => one.value - theirs.get(one.seed));
    if (!differences.length) return "";
    const half = reach(differences, quantiles), centre = mean(differences);
    const interval = half === null ? "" : ` [${points(centre - half)}, ${points(centre + half)}]`;
    return `, ${points(centre)}${interval} points behind`;
  };

  const sentence = (ranked, rows, budget, about, quantiles) => {
    const within = `Within ${amount(budget, about)}`;
    if (!ranked.length) return `${within}: nothing had been measured in every seed.`;
    const [first, second] = ranked;
    const ahead = `${rows[first.row].label} is ahead with ${percent(first.found, quantiles)} % (${inRounds(first.found)})`;
    if (!second) return `${within}: ${ahead}; no other row had been measured.`;
    const follows = `${rows[second.row].label} follows with ${percent(second.found, quantiles)} %`;
    return `${within}: ${ahead}; ${follows}${apart(first.found, second.found, quantiles)}.`;
  };

  const figureOf = (figure, data) => {
    const place = Number(figure.closest("[data-group]").dataset.group);
    const group = data.groups[place], axis = figure.dataset.axis;
    return { place, group, axis, about: group.axes[axis] };
  };

  // A line in the picture, a sentence, and a column of the table for the budget that is chosen.
  const budgetOf = (figure, data) => {
    const { place, group, axis, about } = figureOf(figure, data);
    const box = figure.querySelector(".budget"), table = figure.querySelector("table"), svg = figure.querySelector(".plot > svg");
    if (!box || !table || !svg) return;
    const name = `${place}-${axis}`;
    const left = Number(figure.dataset.left), right = Number(figure.dataset.right);
    const label = make("label", { for: `slider-${name}` });
    const slider = make("input", { type: "range", id: `slider-${name}`, min: 0, max: STEPS, step: 1 });
    const output = make("output", { for: `slider-${name}`, id: `winner-${name}`, "aria-live": "polite" });
    box.replaceChildren(label, slider, output);
    const beyond = make("rect", { class: "beyond", y: 0, height: "100%" });
    const line = make("line", { class: "spent", y1: 0, y2: "100%" });
    svg.append(beyond, line);
    const head = make("th", { scope: "col", class: "chosen" });
    table.tHead.rows[0].append(head);
    const cells = new Map();
    for (const row of table.tBodies[0].rows) cells.set(Number(row.dataset.row), row.insertCell());

    const whole = (budget) => (axis === "rounds" ? Math.round(budget) : budget);
    const at = (step) => whole(left + ((right - left) * step) / STEPS);
    const show = (budget, isAll) => {
      const share = right > left ? (100 * (budget - left)) / (right - left) : 100;
      const found = group.rows.map((row) => ({ row, found: reached(data.rows[row], axis, budget) }));
      const ranked = found.filter((one) => one.found)
        .sort((a, b) => mean(b.found.map((s) => s.value)) - mean(a.found.map((s) => s.value)) || a.row - b.row);
      label.textContent = `Budget: ${amount(budget, about)}`;
      slider.setAttribute("aria-valuetext", amount(budget, about));
      output.textContent = sentence(ranked, data.rows, budget, about, data.quantiles);
      head.textContent = amount(budget, about);
      line.setAttribute("x1", `${share}%`);
      line.setAttribute("x2", `${share}%`);
      beyond.setAttribute("x", `${share}%`);
      beyond.setAttribute("width", `${100 - share}%`);
      for (const { row, found: own } of found) {
        const cell = cells.get(row);
        if (!cell) continue;
        const text = own ? percent(own, data.quantiles) : "-";
        cell.className = "chosen";
        cell.replaceChildren(ranked.length && ranked[0].row === row ? make("b", {}, text) : document.createTextNode(text));
      }
      chosen.set(name, isAll ? Infinity : budget); // who has chosen all means all, also when there is more
    };
    const slide = () => show(at(Number(slider.value)), Number(slider.value) === STEPS);
    slider.addEventListener("input", slide);
    svg.addEventListener("click", (event) => {
      const area = svg.getBoundingClientRect();
      slider.value = Math.round((STEPS * Math.min(Math.max(event.clientX - area.left, 0), area.width)) / area.width);
      slide();
    });
    const wanted = Math.max(chosen.get(name) ?? Infinity, left);
    slider.value = wanted < right ? Math.round((STEPS * (wanted - left)) / (right - left)) : STEPS;
    show(Math.min(wanted, right), wanted === Infinity);
  };

  // One axis at a time; without a script, and on paper, all of them stand one below the other.
  const tabs = (group) => {
    const panels = [...group.querySelectorAll("figure.panel")];
    if (panels.length < 2) return;
    const list = make("div", { class: "tabs", role: "tablist", "aria-label": "What was spent" });
    const buttons = panels.map((panel) => {
      const button = make("button", { type: "button", role: "tab", id: `tab-${panel.id}`, "aria-controls": panel.id }, panel.querySelector("h4").textContent);
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", button.id);
      list.append(button);
      return button;
    });
    const name = `tabs-${group.dataset.group}`;
    const select = (place, focus) => {
      panels.forEach((panel, other) => panel.classList.toggle("hidden", other !== place));
      buttons.forEach((button, other) => {
        button.setAttribute("aria-selected", String(other === place));
        button.tabIndex = other === place ? 0 : -1;
      });
      if (focus) buttons[place].focus();
      chosen.set(name, place);
    };
    buttons.forEach((button, place) => {
      button.addEventListener("click", () => select(place, false));
      button.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        select((place + step + buttons.length) % buttons.length, true);
      });
    });
    panels[0].before(list);
    select(Math.min(chosen.get(name) ?? 0, panels.length - 1), false);
  };

  const enhance = () => {
    const data = JSON.parse(document.getElementById("fedfuse-data").textContent);
    for (const group of document.querySelectorAll("[data-group]")) {
      group.querySelectorAll("figure[data-axis]").forEach((figure) => budgetOf(figure, data));
      tabs(group);
    }
  };

  // By what an element is known on the next page, too.
  const sign = (node) => node.id || `${node.tagName} ${node.getAttribute("aria-label") ?? node.textContent}`;
  const called = (wanted, selector) => [...document.querySelectorAll(selector)].find((node) => sign(node) === wanted);

  const refresh = (html) => {
    const next = new DOMParser().parseFromString(html, "text/html");
    const title = (summary) => summary.firstChild?.textContent; // how far a run is stands behind it
    const open = new Set([...document.querySelectorAll("details[open] > summary")].map(title));
    const focused = document.activeElement && document.activeElement !== document.body ? document.activeElement : null;
    const moved = [...document.querySelectorAll(".scroll")].filter((box) => box.scrollLeft || box.scrollTop)
      .map((box) => [sign(box), box.scrollLeft, box.scrollTop]);
    const height = window.scrollY;
    for (const part of ["header", "main", "#fedfuse-data"]) {
      const fresh = next.querySelector(part), old = document.querySelector(part);
      if (fresh && old) old.replaceWith(document.adoptNode(fresh));
    }
    document.title = next.title;
    for (const one of document.querySelectorAll("details > summary")) if (open.has(title(one))) one.parentElement.open = true;
    enhance();
    for (const [name, left, top] of moved) called(name, ".scroll")?.scrollTo(left, top);
    if (focused && !focused.isConnected) called(sign(focused), focused.tagName)?.focus({ preventScroll: true });
    window.scrollTo({ top: height, behavior: "instant" });
  };

  // On paper nothing can be opened.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const one of closed) one.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const one of closed) one.open = false;
  });

  window.fedfuseReport = { refresh };
  enhance();
})();
