// A dialog that takes a photo with the device's camera. It is loaded when a reader first asks for it.

import { html, nothing, render } from "lit";
import { notice } from "../elements/notice.js";
import { failure, toFailure, type Failure } from "../failure.js";

/** Photos are asked for in about this size, in pixels. Encoders see far fewer. */
const IDEAL_WIDTH = 1280;

/** Opens the dialog. Resolves to the photo, or to null if the reader closes it. */
export async function takePhoto(): Promise<File | null> {
  const dialog = document.createElement("dialog");
  dialog.className = "dialog camera";
  dialog.dataset["testid"] = "camera";
  dialog.setAttribute("aria-labelledby", "camera-title");
  document.body.append(dialog);
  const closed = new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  let photo: File | null = null;
  let stream: MediaStream | null = null;
  const take = async () => {
    photo = await photoOf(dialog.querySelector("video"));
    dialog.close();
  };
  const draw = (state: "asking" | "live" | Failure) =>
    render(
      content(state, take, () => dialog.close()),
      dialog,
    );
  draw("asking");
  dialog.showModal();
  try {
    const opened = await openCamera();
    // The reader may have closed the dialog while the browser asked for permission.
    if (dialog.open) {
      stream = opened;
      draw("live");
      const video = dialog.querySelector("video");
      if (video) video.srcObject = stream;
      dialog.querySelector<HTMLElement>("[data-testid=shutter]")?.focus();
    } else stop(opened);
  } catch (error) {
    draw(cameraFailure(error));
  }
  if (dialog.open) await closed;
  if (stream) stop(stream);
  dialog.remove();
  return photo;
}

function openCamera(): Promise<MediaStream> {
  // Some browsers leave it out without HTTPS, whatever its type says.
  const devices = navigator.mediaDevices as MediaDevices | undefined;
  if (!devices) throw new DOMException("", "SecurityError");
  return devices.getUserMedia({ video: { facingMode: "environment", width: { ideal: IDEAL_WIDTH } }, audio: false });
}

const stop = (stream: MediaStream): void => stream.getTracks().forEach((track) => track.stop());

function content(state: "asking" | "live" | Failure, take: () => Promise<void>, close: () => void) {
  const isFailure = typeof state === "object";
  return html`<h2 id="camera-title">Take a photo</h2>
    ${isFailure ? notice(state, "There is no picture from the camera") : nothing}
    ${state === "asking" ? html`<p class="soft" role="status">Waiting for the camera. Your browser may ask you to allow it.</p>` : nothing}
    ${state === "live" ? html`<video autoplay playsinline muted aria-label="The picture of the camera"></video>` : nothing}
    <p class="dialog-buttons">
      ${state === "live" ? html`<button type="button" class="button" data-testid="shutter" @click=${take}>Take the photo</button>` : nothing}
      <button type="button" class="quiet" data-testid="close" @click=${close}>${isFailure ? "Close" : "Cancel"}</button>
      ${isFailure ? nothing : html`<span class="soft">The photo stays on this device.</span>`}
    </p>`;
}

/** The present picture of the camera as a JPEG file. */
async function photoOf(video: HTMLVideoElement | null): Promise<File | null> {
  if (!video || video.videoWidth === 0) return null;
  const canvas = document.createElement("canvas");
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  canvas.getContext("2d")?.drawImage(video, 0, 0);
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.92));
  return blob && new File([blob], "photo.jpg", { type: blob.type });
}

function cameraFailure(error: unknown): Failure {
  const name = error instanceof DOMException ? error.name : "";
  switch (name) {
    case "NotAllowedError":
      return failure(
        "camera",
        "this page may not use the camera",
        "allow it in the browser’s settings for this page, or choose a file instead",
      );
    case "NotFoundError":
    case "OverconstrainedError":
      return failure("camera", "the browser finds no camera on this device", "choose a file instead");
    case "NotReadableError":
    case "AbortError":
      return failure(
        "camera",
        "the camera does not start",
        "close other programs that use it, or choose a file instead",
      );
    case "SecurityError":
      return failure(
        "camera",
        "the browser allows a camera only to pages from HTTPS or localhost",
        "open the page over HTTPS, or choose a file instead",
      );
    default:
      return failure("camera", toFailure(error).message, "choose a file instead");
  }
}
