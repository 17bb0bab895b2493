// Draws a chart, in a subprocess (kernel/runtime/offload.ts).
export { draw as run } from './draw.ts'
