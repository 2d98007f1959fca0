import "./elements/theme-toggle.js";
import { startFrame } from "./frame.js";

startFrame();
