// @ts-check
// The entry module of the guide pages.
import { startFrame } from './frame.js'

// The samples call the server that shows the page.
for (const block of document.querySelectorAll('.guide pre code'))
  block.textContent = (block.textContent ?? '').replaceAll('http://localhost:8000', location.origin)

startFrame()
