// Frames of the dynamics: a slider, and playing.
import { facts, nFrames } from "./data.js";
import { change, listen, state } from "./state.js";

const PACE = 160; // ms a frame

export function createPlayer(bar) {
  if (!nFrames) { bar.hidden = true; return; }
  const [button, slider, words] = ["button", "input", "output"].map((tag) => bar.querySelector(tag));
  let timer = 0;
  slider.max = nFrames;
  bar.hidden = false;

  function show() {
    slider.value = state.frame + 1;
    words.textContent = state.frame < 0 ? "as built" : `${facts.frames[state.frame]} (${state.frame + 1} of ${nFrames})`;
    slider.setAttribute("aria-valuetext", words.textContent);
  }
  function play(on) {
    clearInterval(timer);
    timer = on ? setInterval(() => change({ frame: (state.frame + 2) % (nFrames + 1) - 1 }), PACE) : 0;
    button.textContent = on ? "Pause" : "Play";
    button.setAttribute("aria-pressed", String(on));
  }
  button.addEventListener("click", () => play(!timer));
  slider.addEventListener("input", () => { play(false); change({ frame: Number(slider.value) - 1 }); });
  listen("frame", show);
  show();
}
