import "./elements/theme-toggle.js";
import { startFrame } from "./frame.js";
import { tellHeight } from "./height.js";
import "./offline/akin-offline.js";
import { reloadWhenReplaced } from "./replaced.js";

startFrame();
reloadWhenReplaced();
tellHeight();
