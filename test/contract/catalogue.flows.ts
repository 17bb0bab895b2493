// Flows that fire the events that no single generated request fires. Each flow creates its records
// through the API and runs background work.
import { enqueue } from '../../src/jobs/queue.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { transaction } from '../../src/kernel/write/write.ts'
import { queueBounce } from '../../src/resources/emails/bounces.ts'
import { queueAnswers } from '../../src/resources/emails/invitation-answers.ts'
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
  const closed_at = '2020-01-01T00:00:00.000Z'
  await server.admin.put(`/leads/${body.data.id}/stage`, { lead_pipeline_stage_id: 5, closed_at })
}

const answerQuotes: Flow = async ({ server, main }) => {
  const { tick, work, admin, clock } = server
  const address = { address: '12 Analytical Way', city: 'London', country: 'GB', postcode: 'W1 2AB' }
  const items = [{ name: 'Catalogue', price: 1 }]
  const day = clock.now().toISOString().slice(0, 10)
  const quote = { subject: 'Catalogue', person_id: main.persons, billing_address: address, items, expiry_date: day }
  for (const status of ['accepted', 'declined', 'sent']) {
    const { body, text } = await admin.post('/quotes', { ...quote, status: 'sent' })
    if (!body.data) throw new Error(text)
    await admin.put(`/quotes/${body.data.id}`, { status })
  }
  await tick()
  clock.advanceMs(3 * 86_400_000)
  await tick()
  await work()
}

const bounce: Flow = async ({ server }) => {
  const address = 'gone@example.com'
  const { body } = await server.admin.post('/emails', { subject: 'Hi', html: '<p>Hi</p>', to: [address] })
  // This installation has no mail server.
  await server.store.db.updateTable('emails').set({ status: 'sent' }).where('id', '=', body.data.id).execute()
  const messageIds = [body.data.message_id]
  await transaction(systemContext(server.app.services, 'inbound_mail'), (ctx) =>
    queueBounce(ctx, { messageIds, recipients: [{ address, reason: '550 5.1.1 unknown' }] }),
  )
}

const answerInvitation: Flow = async ({ server }) => {
  const body = { type: 'meeting', title: 'Catalogue', participants: { users: [1] }, allow_overlap: true }
  const times = { schedule_from: '2026-03-02T09:00:00.000Z', schedule_to: '2026-03-02T09:30:00.000Z' }
  const { id } = (await server.admin.post('/activities', { ...body, ...times })).body.data
  const { services } = server.app
  const [address, response, at] = ['admin@example.com', 'accepted', null] as const
  const answers = [{ uid: `activity-${id}@${services.config.mailDomain}`, address, response, at }]
  await transaction(systemContext(services, 'inbound_mail'), (ctx) =>
    queueAnswers(ctx, { answers, authors: [address] }),
  )
}

const letTimePass: Flow = async ({ server, main }) => {
  const { admin, clock, tick, work } = server
  const timing = { field: 'created_at', days: 0 }
  const actions = [{ id: 'notify', notice: { user_id: 1, subject: 'Catalogue', text: 'x' } }]
  const events = { leads: 'lead', activities: 'activity', persons: 'contacts.person', quotes: 'quote' }
  for (const [entity_type, noun] of Object.entries(events))
    await admin.post('/settings/workflows', { name: noun, entity_type, event: `${noun}.due`, timing, actions })
  clock.advanceMs(60_000)
  const at = (days: number): string => new Date(clock.now().getTime() + days * 86_400_000).toISOString()
  await admin.post('/leads', { title: 'Catalogue', lead_value: 1, person: { name: 'Catalogue' } })
  await admin.post('/activities', { type: 'task', title: 'Catalogue', user_id: 1, remind_at: at(0) })
  const address = { address: '12 Analytical Way', city: 'London', country: 'GB', postcode: 'W1 2AB' }
  const quote = { subject: 'Catalogue', person_id: main.persons, billing_address: address }
  await admin.post('/quotes', { ...quote, items: [{ name: 'x', price: 1 }], expiry_date: at(9).slice(0, 10) })
  const fair = { name: 'Missed', description: 'x', date: at(2).slice(0, 10) }
  const { data } = (await admin.post('/settings/marketing/events', fair)).body
  const campaign = { name: 'Missed', subject: 'x', is_active: true, email_template_id: 1 }
  await admin.post('/settings/marketing/campaigns', { ...campaign, marketing_event_id: data.id })
  await tick()
  clock.advanceMs(5 * 86_400_000)
  await tick()
  // This installation has no mail server, so the schedule of reminders waits.
  await enqueue(systemContext(server.app.services, 'api'), { kind: 'activities.remind' }, { due: at(0) })
  await work()
}

export const flows: readonly Flow[] = [
  changeOwnPassword,
  importToTheEnd,
  failToSignIn,
  winLoseAndReopen,
  answerQuotes,
  bounce,
  answerInvitation,
  letTimePass,
]
