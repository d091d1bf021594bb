/** Codes that a camera reads: live, or from a photograph. */
import { fill, h } from "../dom";
import { Told } from "../trade/told";
import { field, type Desk } from "./desk";

type Detector = { detect(image: ImageBitmap | HTMLVideoElement): Promise<{ rawValue: string }[]> };
declare global {
  interface Window {
    BarcodeDetector?: new (options: { formats: string[] }) => Detector;
  }
}

/** Between two looks at the camera's picture. */
const LOOK_MS = 100;
const NO_CODES = "This browser reads no codes: paste the text, or use a reader that types it.";
const NO_CODE = "There is no code in the picture: take it again, nearer and straight.";
const REFUSED = "The browser does not let this page use the camera: allow it beside the page's address, or choose a picture of the code.";
const MISSING = "The camera does not answer: choose a picture of the code, or paste the text.";

/** What reads a code and gives its text to `read`; a browser that cannot says so. */
export function scanner(desk: Desk, read: (text: string) => Promise<void> | void): HTMLElement {
  const { BarcodeDetector } = window;
  if (!BarcodeDetector) return h("p", { class: "caption" }, NO_CODES);
  const detector = new BarcodeDetector({ formats: ["qr_code"] });
  const file = h("input", { type: "file", accept: "image/*", capture: "environment", change: () => void desk.act(readPicture) });
  async function readPicture(): Promise<void> {
    const [picture] = file.files ?? [];
    if (!picture) return;
    const [code] = await detector.detect(await createImageBitmap(picture));
    if (!code) throw new Told(NO_CODE);
    await read(code.rawValue);
  }
  // Browsers give no camera to a page without TLS, except on this machine.
  const hasCamera = navigator.mediaDevices?.getUserMedia !== undefined;
  return h("div", { class: "scan" }, hasCamera ? camera(desk, detector, read) : null, field("Scan a code", file));
}

/** The live picture. It ends with the first code, by its button, and when it is no longer shown. */
function camera(desk: Desk, detector: Detector, read: (text: string) => Promise<void> | void): HTMLElement {
  const element = h("div", {});
  let stream: MediaStream | null = null;
  const start = desk.action("Use the camera", open);
  const stop = h("button", { type: "button", click: close }, "Stop the camera");
  fill(element, start);

  async function open(): Promise<void> {
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
    } catch (error) {
      throw new Told((error as DOMException).name === "NotAllowedError" ? REFUSED : MISSING);
    }
    const video = h("video", { "aria-label": "What the camera sees", playsinline: "" });
    video.muted = true;
    video.srcObject = stream;
    fill(element, video, stop);
    stop.focus();
    void look(video, stream);
  }

  function close(): void {
    stream?.getTracks().forEach((track) => track.stop());
    stream = null;
    fill(element, start);
  }

  /** Until this stream is stopped: another one may be open by then. */
  async function look(video: HTMLVideoElement, own: MediaStream): Promise<void> {
    await video.play().catch(() => undefined);
    while (stream === own && video.isConnected) {
      // A picture that has not come yet, or is out of focus, is looked at again.
      const [code] = await detector.detect(video).catch(() => []);
      // While something else is under way the code stays before the camera.
      const take = async () => {
        close();
        await read(code!.rawValue);
      };
      if (code && stream === own) await desk.act(take);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    if (stream === own) close();
  }

  return element;
}
