// Keeps a page up to date while runs go on: asks whoever sent it for news, and takes over a newer page when there is one.
(() => {
  "use strict";
  const PERIOD = 1000, UNSEEN = 10000, LOST = 3000;
  let tag = "", behind = 0, held = false, lost = null;
  let base = document.title;
  const now = () => document.getElementById("now");

  const clock = (seconds) => {
    const whole = Math.max(0, Math.round(seconds)), two = (number) => String(number).padStart(2, "0");
    return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
  };

  // Times go on by themselves, by the clock of whoever sent them.
  const count = () => {
    const time = (Date.now() + behind) / 1000;
    for (const one of document.querySelectorAll("#now [data-left]")) {
      const each = Number(one.dataset.each), begun = Number(one.dataset.since);
      const left = Math.max(0, each - (time - begun)) + each * (Number(one.dataset.left) - 1);
      one.textContent = `${one.dataset.bound}${clock(left)} left`;
    }
    for (const one of document.querySelectorAll("#now [data-quiet]")) {
      const quiet = time - Number(one.dataset.quiet);
      one.textContent = quiet > Number(one.dataset.long) ? `nothing has happened for ${clock(quiet)}` : "";
    }
    document.title = `${now().dataset.short} - ${base}`;
  };

  // What is sent is words and numbers in our own elements; what says the same stays as it is.
  const show = (html) => {
    const fresh = new DOMParser().parseFromString(html, "text/html").getElementById("now");
    const old = now();
    const said = fresh.querySelector("#now-said"), before = old.querySelector("#now-said");
    if (said.textContent === before.textContent) said.replaceWith(before); // it is read aloud only if it is news
    old.replaceWith(document.adoptNode(fresh));
    count();
  };

  const isBusy = () => held || !window.getSelection().isCollapsed;

  const takeOver = async (wanted) => {
    if (isBusy()) return;
    const answer = await fetch("/", { cache: "no-store" });
    if (!answer.ok) return;
    const shown = answer.headers.get("ETag");
    const html = await answer.text();
    if (isBusy()) return;
    const strip = now();
    window.fedfuseReport.refresh(html);
    base = document.title;
    strip.dataset.page = shown ? shown.replaceAll('"', "") : wanted;
  };

  const warn = (text) => {
    const said = document.getElementById("now-said");
    if (said && said.textContent !== text) said.textContent = text;
  };

  const ask = async () => {
    const answer = await fetch("/now", { cache: "no-store", headers: tag ? { "If-None-Match": tag } : {} });
    if (answer.headers.get("Date")) behind = Date.parse(answer.headers.get("Date")) + 500 - Date.now();
    if (answer.status !== 304) {
      if (!answer.ok) throw new Error("no news");
      const news = await answer.json();
      const page = now().dataset.page;
      show(news.now);
      now().dataset.wanted = news.page;
      now().dataset.page = page;
      tag = answer.headers.get("ETag") ?? "";
    }
    if (lost) tag = ""; // what was said meanwhile is said anew
    lost = null;
    const wanted = now().dataset.wanted;
    if (wanted && wanted !== now().dataset.page) await takeOver(wanted);
  };

  const go = async () => {
    try {
      await ask();
    } catch {
      lost ??= new Date();
      const over = now().dataset.short === "finished" ? "The runs are finished, and fedfuse has ended" : "fedfuse does not answer";
      warn(`${over}: this page is as it was at ${lost.toLocaleTimeString()}.`);
    }
    if (!lost) count();
    setTimeout(go, lost ? LOST : document.hidden ? UNSEEN : PERIOD);
  };

  // Nothing is replaced below a finger or a pressed button.
  window.addEventListener("pointerdown", () => { held = true; }, true);
  for (const end of ["pointerup", "pointercancel", "blur"]) window.addEventListener(end, () => { held = false; }, true);
  go();
})();
