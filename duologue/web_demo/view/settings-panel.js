/**
 * The settings dialog: shows the choices, writes them to the settings, says what changed.
 */

import { Playback } from "../sdk/audio/playback.js";
import { save } from "../settings.js";

/** @typedef {import("../settings.js").Settings} Settings */

const MICROPHONE = ["microphoneId", "echoCancellation", "noiseSuppression", "autoGainControl"];
const LINE = ["transport", "model"];
const SESSION = ["instructions", "turnTaking", "eagerness", "silence_ms"];

export class SettingsPanel {
  #dialog;
  #form;
  #settings;

  onMicrophone = () => {};
  onSpeaker = () => {};
  onSession = () => {};
  /** How the next call goes. */
  onLine = () => {};
  /** @type {(apiKey: string) => void} */
  onKey = () => {};

  /**
   * @param {Document} document
   * @param {Settings} settings
   */
  constructor(document, settings) {
    this.#dialog = /** @type {HTMLDialogElement} */ (document.getElementById("settings"));
    this.#form = /** @type {HTMLFormElement} */ (this.#dialog.querySelector("form"));
    this.#settings = settings;
    this.#form.addEventListener("change", ({ target }) => this.#changed(target));
    this.#form.addEventListener("input", () => this.#showDependents());
    this.#dialog.addEventListener("click", ({ target }) => {
      if (target === this.#dialog) this.#dialog.close(); // the backdrop
    });
    const speakers = /** @type {HTMLElement} */ (document.getElementById("speaker-field"));
    speakers.hidden = !Playback.canChooseSpeaker();
    this.#fill();
  }

  open() {
    void this.listDevices();
    this.#dialog.showModal();
  }

  /** Names are known to the page only after the microphone was allowed. */
  async listDevices() {
    const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
    this.#options("microphoneId", "Microphone", devices, "audioinput");
    this.#options("speakerId", "Speaker", devices, "audiooutput");
  }

  /** @param {string[]} models that hold conversations; a choice is shown where there is one */
  offerModels(models) {
    const field = /** @type {HTMLElement} */ (document.getElementById("model-field"));
    field.hidden = models.length < 2;
    this.#setOptions("model", [["", "The server's choice"], ...models.map((id) => [id, id])]);
  }

  #fill() {
    for (const [name, value] of Object.entries(this.#settings)) {
      const control = /** @type {any} */ (this.#form.elements.namedItem(name));
      if (!control) continue;
      if (control.type === "checkbox") control.checked = value;
      else control.value = value;
    }
    this.#showDependents();
  }

  /** @param {EventTarget | null} target */
  #changed(target) {
    const control = /** @type {HTMLInputElement} */ (target);
    if (control.name === "apiKey") {
      this.onKey(control.value.trim());
      return;
    }
    const settings = /** @type {any} */ (this.#settings);
    const isNumber = typeof settings[control.name] === "number";
    const value = control.type === "checkbox" ? control.checked : control.value;
    settings[control.name] = isNumber ? Number(value) : value;
    save(localStorage, this.#settings);
    this.#showDependents();
    if (MICROPHONE.includes(control.name)) this.onMicrophone();
    else if (SESSION.includes(control.name)) this.onSession();
    else if (LINE.includes(control.name)) this.onLine();
    else if (control.name === "speakerId") this.onSpeaker();
  }

  #showDependents() {
    const data = new FormData(this.#form);
    for (const field of this.#form.querySelectorAll("[data-for]")) {
      const { dataset } = /** @type {HTMLElement} */ (field);
      /** @type {HTMLElement} */ (field).hidden = dataset.for !== data.get("turnTaking");
    }
    const output = /** @type {HTMLOutputElement} */ (this.#form.elements.namedItem("silence"));
    output.value = `${(Number(data.get("silence_ms")) / 1000).toFixed(2)} s`;
  }

  /**
   * @param {"microphoneId" | "speakerId"} name
   * @param {string} word
   * @param {MediaDeviceInfo[]} devices
   * @param {MediaDeviceKind} kind
   */
  #options(name, word, devices, kind) {
    const known = devices.filter(
      (device) => device.kind === kind && device.deviceId && device.deviceId !== "default",
    );
    this.#setOptions(name, [
      ["", "The system's choice"],
      ...known.map(({ deviceId, label }, index) => [deviceId, label || `${word} ${index + 1}`]),
    ]);
  }

  /**
   * @param {"microphoneId" | "speakerId" | "model"} name
   * @param {string[][]} options value and label
   */
  #setOptions(name, options) {
    const select = /** @type {HTMLSelectElement} */ (this.#form.elements.namedItem(name));
    select.replaceChildren(...options.map(([value, label]) => new Option(label, value)));
    select.value = this.#settings[name];
    if (select.selectedIndex === -1) select.value = "";
  }
}
