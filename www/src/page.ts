import "./elements/theme-toggle.js";
import { startFrame } from "./frame.js";
import "./offline/akin-offline.js";

startFrame();
