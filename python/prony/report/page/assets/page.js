"use strict";
// What a page does beyond showing itself: charts that answer, a key that hides, tables that sort. Without it all stands there.
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);
  const button = (text, action, more = {}) => {
    const made = make("button", text, { type: "button", ...more });
    made.addEventListener("click", action);
    return made;
  };
  const figures = all("figure");
  const ERRORS = 1; // Vega's level of logging
  const views = new Map();
  const hidden = new Set();

  // --- what is compressed in the page ---------------------------------------------------------------------

  const unpack = async (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  let reading, loading;
  const read = () => (reading ??= unpack("charts").then(JSON.parse));
  // The policy of the page allows this one script by the digest of its text.
  const library = () => (loading ??= unpack("library").then((text) => { document.head.append(make("script", text)); return window.vegaEmbed; }));
  const copied = (value) => JSON.parse(JSON.stringify(value));

  // --- what a pointer or a key finds ----------------------------------------------------------------------

  const tip = make("div", "", { className: "tip", hidden: true });
  document.body.append(tip);
  const hover = (_, event, __, value) => {
    tip.hidden = !value || !event;
    if (tip.hidden) return;
    const list = document.createElement("dl");
    for (const [name, said] of Object.entries(value)) list.append(make("dt", name), make("dd", String(said)));
    tip.replaceChildren(list);
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - width - 4))}px`;
    tip.style.top = `${event.clientY + 14 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 14}px`;
  };
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
  for (const term of all("a.term")) {
    const explain = () => {
      const { left, bottom } = term.getBoundingClientRect();
      hover(null, { clientX: left - 12, clientY: bottom - 10 }, null, { [term.textContent]: document.querySelector(term.hash)?.nextElementSibling?.textContent ?? "" });
    };
    for (const kind of ["pointerenter", "focus"]) term.addEventListener(kind, explain);
    for (const kind of ["pointerleave", "blur"]) term.addEventListener(kind, () => { tip.hidden = true; });
  }

  const rowsOf = async (figure) => (await read()).charts[figure.id].data.values;
  const walk = async (figure, event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.target !== figure || !step) return;
    event.preventDefault();
    const rows = (await rowsOf(figure)).filter((row) => row.said && !hidden.has(row.name));
    if (!rows.length) return;
    const at = figure.dataset.at === undefined ? (step > 0 ? 0 : rows.length - 1) : (Number(figure.dataset.at) + step + rows.length) % rows.length;
    figure.dataset.at = at;
    const row = rows[at];
    const more = ["percentile", "load", "role", "trial", "block", "second"].filter((name) => typeof row[name] !== "undefined" && !(name === "trial" && row.block));
    figure.querySelector(".said").textContent = [row.name, ...more.map((name) => `${name} ${row[name]}`), row.said].join(", ");
  };

  // --- charts ---------------------------------------------------------------------------------------------

  const themed = (spec, theme) => JSON.parse(JSON.stringify(spec).replace(/#[0-9a-f]{6}/g, (hex) => theme[hex] ?? hex));
  const draw = async (figure) => {
    const { charts, theme } = await read();
    const embed = await library();
    const spec = themed(figure.spec ?? charts[figure.id], theme);
    for (const one of spec.params ?? []) if (one.name === "hidden") one.value = [...hidden];
    const place = document.createElement("div");
    const made = await embed(place, spec, { mode: "vega-lite", ast: true, actions: false, defaultStyle: false, renderer: "svg", tooltip: hover, logLevel: ERRORS });
    views.get(figure)?.finalize();
    const svg = place.querySelector("svg");
    const [width, height] = ["width", "height"].map((name) => svg.getAttribute(name));
    if (!svg.getAttribute("viewBox")) svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-hidden", "true");
    figure.querySelector(".plot").replaceChildren(place);
    views.set(figure, made);
    figure.dataset.live = "";
  };
  const wake = (figure) => { figure.waking ??= draw(figure).catch((error) => { figure.querySelector(".said").textContent = `cannot be drawn: ${error.message}`; }); return figure.waking; };

  const save = async (figure, kind) => {
    const [{ charts }, embed] = [await read(), await library()];
    const spec = copied(figure.spec ?? charts[figure.id]);
    spec.background = "#ffffff";
    for (const one of spec.params ?? []) if (one.name === "hidden") one.value = [...hidden];
    const made = await embed(document.createElement("div"), spec, { mode: "vega-lite", ast: true, actions: false, defaultStyle: false, renderer: "svg", logLevel: ERRORS });
    const address = await made.view.toImageURL(kind, 2);
    made.finalize();
    make("a", "", { href: address, download: `${figure.id}.${kind}` }).click();
  };
  const tsv = (rows) => {
    const names = [...new Set(rows.flatMap(Object.keys))].filter((name) => !/(^|_)(at|scale)$/.test(name));
    const cell = (value) => String(value ?? "").replace(/[\t\n\r]/g, " ").replace(/^([=+@-])(?![\d.])/, "'$1");
    return [names, ...rows.map((row) => names.map((name) => row[name]))].map((row) => row.map(cell).join("\t")).join("\n");
  };
  const copy = async (text, where) => {
    let done = true;
    try { await navigator.clipboard.writeText(text); } catch {
      const area = make("textarea", text);
      document.body.append(area); area.select(); done = document.execCommand("copy"); area.remove();
    }
    const before = where.textContent;
    where.textContent = done ? "Copied" : "Not allowed";
    setTimeout(() => { where.textContent = before; }, 1500);
  };
  const flips = (spec) => (spec.layer ?? []).flatMap((layer) => [layer.encoding?.y]).filter((y) => y?.type === "quantitative" && y.scale);
  const flip = async (figure, where) => {
    const spec = (figure.spec ??= copied((await read()).charts[figure.id]));
    const logs = flips(spec).some((y) => y.scale.type === "log");
    const rows = spec.data.values;
    if (!logs && rows.some((row) => ["value", "low"].some((name) => row[name] <= 0))) { where.textContent = "Has zeros"; return; }
    for (const y of flips(spec)) y.scale = logs ? { zero: true, nice: true } : { type: "log", nice: false };
    where.textContent = logs ? "Log scale" : "Linear scale";
    await draw(figure);
  };

  for (const figure of figures) {
    const tools = make("div", "", { className: "tools" });
    const lazy = "lazy" in figure.dataset;
    if (lazy) tools.append(button("Draw", (event) => { event.target.remove(); wake(figure); }));
    tools.append(
      button("Copy data", async (event) => copy(tsv(await rowsOf(figure)), event.target)),
      button("SVG", () => save(figure, "svg")),
      button("PNG", () => save(figure, "png")),
    );
    if (/against|percentiles|tradeoff/.test(figure.id)) {
      const linear = button("Log scale", (event) => flip(figure, event.target));
      read().then(({ charts }) => { if (flips(charts[figure.id]).some((y) => y.scale.type === "log")) linear.textContent = "Linear scale"; });
      tools.append(linear);
    }
    figure.append(make("p", "", { className: "said", ariaLive: "polite" }), tools);
    figure.addEventListener("keydown", (event) => walk(figure, event));
    if (!lazy) for (const kind of ["pointerenter", "focusin", "touchstart"]) figure.addEventListener(kind, () => wake(figure), { once: true, passive: true });
  }
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting && hidden.size) wake(target);
  });
  for (const figure of figures) if (!("lazy" in figure.dataset)) seen.observe(figure);

  // --- the key --------------------------------------------------------------------------------------------

  const key = document.querySelector("nav.key");
  const switches = [];
  const refresh = async () => {
    for (const one of switches) one.ariaPressed = String(!hidden.has(one.name));
    for (const figure of figures) {
      const box = figure.getBoundingClientRect();
      if (views.has(figure)) { views.get(figure).view.signal("hidden", [...hidden]); await views.get(figure).view.runAsync(); }
      else if (!("lazy" in figure.dataset) && box.bottom > 0 && box.top < innerHeight) await wake(figure);
    }
  };
  if (key && figures.length) {
    const names = all("li", key).map((item) => item.dataset.name);
    for (const item of all("li", key)) {
      const name = item.dataset.name;
      const made = button("", (event) => {
        if (event.shiftKey || event.detail === 2) { const only = hidden.size === names.length - 1 && !hidden.has(name); hidden.clear(); if (!only) for (const other of names) if (other !== name) hidden.add(other); }
        else hidden.has(name) ? hidden.delete(name) : hidden.add(name);
        refresh();
      }, { title: "Hide or show; with Shift, show it alone" });
      made.name = name; made.ariaPressed = "true";
      made.append(...item.childNodes); item.append(made); switches.push(made);
    }
    key.append(button("Light or dark", () => {
      const root = document.documentElement;
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
    }));
  }

  // --- tables ---------------------------------------------------------------------------------------------

  const valueOf = (cell) => {
    const data = cell?.querySelector("data");
    return data ? Number(data.value) : cell?.textContent.trim() ?? "";
  };
  const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : typeof a === "number" ? -1 : typeof b === "number" ? 1 : String(a).localeCompare(String(b)));
  for (const table of all("table.figures")) {
    const heads = all("thead tr:last-child > *", table);
    heads.forEach((head, column) => {
      if (head.tagName !== "TH") return;
      head.ariaSort = "none"; head.tabIndex = 0;
      const sort = () => {
        const down = head.ariaSort === "ascending" ? -1 : 1;
        for (const other of heads) if (other.ariaSort) other.ariaSort = "none";
        head.ariaSort = down > 0 ? "ascending" : "descending";
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort((a, b) => down * order(valueOf(a.cells[column]), valueOf(b.cells[column]))));
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); } });
    });
    const text = () => [heads, ...[...table.tBodies[0].rows].map((row) => [...row.cells])].map((row) => row.map((cell) => cell.textContent.trim().replace(/\s+/g, " ")).join("\t")).join("\n");
    const tools = make("div", "", { className: "tools" });
    tools.append(button("Copy table", (event) => copy(text(), event.target)));
    table.parentElement.after(tools);
  }
  for (const code of all("pre.command")) {
    const tools = make("div", "", { className: "tools" });
    tools.append(button("Copy command", (event) => copy(code.textContent, event.target)));
    code.after(tools);
  }

  // --- the index of a site --------------------------------------------------------------------------------

  const filters = document.getElementById("filters");
  if (filters) {
    const [search, server, found] = ["search", "server", "found"].map((id) => document.getElementById(id));
    const items = all("#studies > li");
    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/);
      for (const item of items) {
        const text = item.textContent.toLowerCase();
        item.hidden = !words.every((word) => text.includes(word)) || (server.value && !item.dataset.servers.split("\n").includes(server.value));
      }
      found.textContent = `${items.filter((item) => !item.hidden).length} of ${items.length}`;
    };
    filters.hidden = false;
    for (const field of [search, server]) field.addEventListener("input", filter);
  }
})();
