// @ts-check
// The entry module of the guide pages.
import { startFrame } from './frame.js'

startFrame()
