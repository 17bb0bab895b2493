// Draws a chart in a subprocess (kernel/runtime/offload.ts).
export { drawSvg as run } from './draw.ts'
