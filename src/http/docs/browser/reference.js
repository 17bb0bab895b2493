// @ts-check
// The entry module of the reference page.
import { byId } from './dom.js'
import { startFrame } from './frame.js'
import { startRoutes } from './routes.js'
import { startTags } from './tags.js'

byId('origin').textContent = `${location.origin}/api/admin`
startTags()
startRoutes()
startFrame()
