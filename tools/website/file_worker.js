// Browsers do not start workers for a page that was opened from a file. The site's search then runs in a hidden frame,
// which provides the functions that the worker's script uses: postMessage, message events and importScripts.
if (location.protocol === "file:") {
  const load = (frame, url) =>
    new Promise((resolve, reject) => {
      const script = frame.contentDocument.createElement("script");
      script.src = url;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`cannot load ${url}`));
      frame.contentDocument.head.append(script);
    });
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      const answer = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.postMessage = (data) => setTimeout(answer, 0, data);
      this.inside.importScripts = (...urls) => urls.reduce((last, each) => last.then(() => load(frame, each)), Promise.resolve());
      this.ready = load(frame, new URL(url, location.href).href);
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }
  };
  window.IFrameWorker = window.Worker; // by this name, the worker's script detects the frame
}
