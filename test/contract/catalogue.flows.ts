// Flows that fire the events that no single generated request fires. Each flow creates its records
// through the API and runs background work.
import { adminPassword } from '../support/app.ts'
import { csvOf, importing } from '../support/importing.ts'
import type { World } from './support.ts'

type Flow = (world: World) => Promise<unknown>

const changeOwnPassword: Flow = ({ server }) => {
  const password = 'another correct horse'
  return server.admin.put('/account', {
    current_password: adminPassword,
    password,
    password_confirmation: password,
  })
}

const importToTheEnd: Flow = async ({ server }) => {
  const imports = importing(server.admin)
  const { id } = await imports.record(
    'products',
    csvOf([
      ['sku', 'name', 'price'],
      ['catalogue', 'Catalogue', 1],
    ]),
  )
  await imports.post(id, 'validate')
  await imports.post(id, 'start')
  await server.work()
}

const failToSignIn: Flow = ({ server }) =>
  server.anonymous.post('/login', { email: 'admin@example.com', password: 'a guess', device_name: 'x' })

const winLoseAndReopen: Flow = async ({ server }) => {
  const { body } = await server.admin.post('/leads', { title: 'Catalogue', lead_value: 1 })
  for (const stage of [5, 6, 1])
    await server.admin.put(`/leads/${body.data.id}/stage`, { lead_pipeline_stage_id: stage })
}

export const flows: readonly Flow[] = [changeOwnPassword, importToTheEnd, failToSignIn, winLoseAndReopen]
