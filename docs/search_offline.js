/* Search in pages that are opened as files: browsers refuse workers there, so a hidden frame
   does a worker's work. The theme's own script for this would be loaded from a network. */
"use strict";

class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.appendChild(frame);
    this.scope = frame.contentWindow;
    // What the worker says with postMessage() arrives here as a message event.
    this.scope.postMessage = (data) => {
      const event = new MessageEvent("message", { data: data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    };
    const script = frame.contentDocument.createElement("script");
    this.loaded = new Promise((resolve) => script.addEventListener("load", resolve));
    script.src = url;
    frame.contentDocument.body.appendChild(script);
  }

  postMessage(data) {
    this.loaded.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data: data })));
  }

  terminate() {
    this.scope.frameElement.remove();
  }
}

if (location.protocol === "file:") {
  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
}
