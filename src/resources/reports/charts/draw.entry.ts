// Draws a chart, in a subprocess (kernel/offload.ts).
export { draw as run } from './draw.ts'
