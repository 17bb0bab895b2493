// @ts-check
// The entry of the guides.
import { startFrame } from './frame.js'

startFrame()
