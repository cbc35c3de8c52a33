import { render } from "preact";
import * as api from "./api";
import { interrupt, refresh } from "./follow";
import { loadAbout } from "./page";
import "./style.css";
import { App } from "./view/app";

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
  const began = begin();
  render(<App />, place);
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
