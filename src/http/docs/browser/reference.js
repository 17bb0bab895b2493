// @ts-check
// The entry of the reference page.
import { byId, loadOutline } from './dom.js'
import { startFrame } from './frame.js'
import { startRoutes } from './routes.js'
import { startSwaggerUi } from './swagger.js'

startFrame()
byId('origin').textContent = `${location.origin}/api/admin`
const outline = await loadOutline()
startRoutes(outline, startSwaggerUi(outline))
