import { render } from "preact";
import * as api from "./api";
import { interrupt, refresh } from "./follow";
import { loadAbout } from "./page";
import "./style.css";
import { App, loadPanels } from "./view/app";

/** How often jobs of other tabs are looked for. */
const LOOK_MS = 4000;

async function begin(): Promise<void> {
  try {
    await api.enter();
  } catch {
    // The banner says so.
  }
  if (api.access.value === "old") return;
  await Promise.all([refresh(), loadAbout()]);
  if (api.access.peek() === "asking") api.access.value = "given";
}

const place = document.getElementById("page");
if (place) {
  place.replaceChildren();
  let began = begin();
  // A new link in the tab of an old one changes only the address.
  addEventListener("hashchange", () => {
    if (!api.hasToken()) return;
    api.access.value = "asking";
    began = began.then(begin);
  });
  render(<App />, place);
  // After what is asked for first.
  setTimeout(loadPanels);
  api.onBack(() => {
    void refresh();
    void loadAbout();
  });
  const look = () => {
    if (document.visibilityState === "visible" && api.access.value === "given" && api.lostUntil.value === null) void refresh();
  };
  addEventListener("offline", () => {
    interrupt();
  });
  void began.then(() => {
    setInterval(look, LOOK_MS);
  });
}
