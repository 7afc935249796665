// Finds a Chromium.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

function find() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const name of ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]) {
    for (const folder of process.env.PATH.split(delimiter)) {
      const file = join(folder, name);
      try {
        accessSync(file, constants.X_OK);
        return file;
      } catch {
        // not there
      }
    }
  }
  return null;
}

export function chromiumPath() {
  const path = find();
  if (!path) throw new Error("there is no Chromium: install it (apt-get install chromium), or name it in CHROMIUM");
  return path;
}
