// The story of the demo: 90 days of sales of an invented company, created through API calls. Each
// step runs with the clock of the application set to the time of the step. Every start creates the
// same story, whose dates end today.
import type { App } from '../../app.ts'
import { operations } from '../../contract/operations.gen.ts'
import type { Body } from '../../contract/types.ts'
import { type Api, postMail, signIn, submitForm } from './api.ts'
import { demoOrganizations, demoProducts, demoTags, lostReasons, notes, questions, sellers } from './company.ts'
import { asciiName, dateOf, dayMs, hourMs, pick, storyDays, workingHour } from './story-values.ts'

const leadCount = 36

/** The ids of the seeded stages of the default pipeline. */
const stage = { followUp: 2, prospect: 3, negotiation: 4, won: 5, lost: 6 }

export interface StorySetting {
  app: App
  /** The clock of the application. The story sets its time. */
  clock: { set(time: Date): void }
  now: Date
  admin: { email: string; password: string }
  inboundSecret: string
  webhookUrl: string
}

interface Contact {
  id: number
  name: string
  email: string
  organization: string
  organizationId: number
  address: { address: string; city: string; country: string; postcode: string }
}

interface Step {
  at: number
  run: () => Promise<unknown>
}

/** The data that all steps share. */
interface Cast extends StorySetting {
  boss: Api
  team: { api: Api; id: number; name: string }[]
  productIds: number[]
  tagIds: number[]
  contacts: Contact[]
  steps: Step[]
}

export async function tellStory(setting: StorySetting): Promise<void> {
  const beginning = setting.now.getTime() - storyDays * dayMs
  setting.clock.set(new Date(beginning))
  const cast = await openShop(setting)
  for (const [index] of Array.from({ length: leadCount }).entries()) planLead(cast, index, beginning)
  planCampaign(cast)
  planForm(cast)
  planWebhook(cast)
  const past = cast.steps.filter(({ at }) => at < setting.now.getTime()).sort((a, b) => a.at - b.at)
  let today = 0
  for (const { at, run } of past) {
    setting.clock.set(new Date(at))
    await run()
    // Runs the waiting jobs when a new day begins, so that e-mails and webhooks are sent soon after
    // their cause.
    if (Math.floor(at / dayMs) > today) await setting.app.worker.drain()
    today = Math.floor(at / dayMs)
  }
  setting.clock.set(setting.now)
  await setting.app.worker.drain()
  for (const { signOut } of [cast.boss, ...cast.team.map(({ api }) => api)]) await signOut()
}

/** Creates the users, tags, products, organizations and persons. */
async function openShop(setting: StorySetting): Promise<Cast> {
  const { app, admin } = setting
  const boss = await signIn(app, admin.email, admin.password)
  await boss.call('saveConfiguration', {
    values: {
      'general.company.name': 'Brightwater Instruments',
      'general.company.address': '14 Quay Road\nBristol BS1 4DJ\nUnited Kingdom',
    },
  })
  const role = await boss.call('createRole', {
    name: 'Sales',
    permission_type: 'custom',
    permissions: salesPermissions(),
  })
  const team: Cast['team'] = []
  for (const { name, email } of sellers) {
    const { password } = admin
    const user = { name, email, role_id: role.id, password, password_confirmation: password }
    const { id } = await boss.call('createUser', { ...user, view_permission: 'global' })
    team.push({ id, name, api: await signIn(app, email, password) })
  }
  await boss.call('createGroup', { name: 'Field sales', user_ids: team.map(({ id }) => id) })
  const tagIds: number[] = []
  for (const [name, color] of demoTags) tagIds.push((await boss.call('createTag', { name, color })).id)
  const productIds: number[] = []
  for (const product of demoProducts) productIds.push((await boss.call('createProduct', product)).id)
  await stock(boss, productIds)
  return { ...setting, boss, team, tagIds, productIds, contacts: await meetPeople(team, tagIds), steps: [] }
}

const salesPermissions = (): Permissions => {
  const keys = Object.values(operations).flatMap(({ permission }: { permission?: string | null }) => permission ?? [])
  const isForSales = (key: string): boolean => /^(leads|quotes|mail|activities|contacts|products)(\.|$)/.test(key)
  return [...new Set(keys)].filter(isForSales).sort() as Permissions
}

type Permissions = NonNullable<Body<'createRole'>['permissions']>

async function stock(boss: Api, productIds: readonly number[]): Promise<void> {
  const address = { address: '14 Quay Road', country: 'GB', city: 'Bristol', postcode: 'BS1 4DJ' }
  const contact = { contact_name: 'Ruth Adeyemi', contact_emails: [{ value: 'store@brightwater.example' }] }
  const store = await boss.call('createWarehouse', { name: 'Bristol store', ...contact, contact_address: address })
  const shelf = await boss.call('createLocation', { name: 'A-01', warehouse_id: store.id })
  // The service plan and the training have no stock.
  for (const [index, id] of productIds.slice(0, 5).entries())
    await boss.call(
      'updateProductInventories',
      {
        inventories: [{ warehouse_location_id: shelf.id, in_stock: 30 + index * 7, allocated: index }],
      },
      id,
    )
}

async function meetPeople(team: Cast['team'], tagIds: readonly number[]): Promise<Contact[]> {
  const contacts: Contact[] = []
  for (const [index, [organization, city, country, street, domain, people]] of demoOrganizations.entries()) {
    const { api, id: userId } = pick(team, index)
    const address = { address: street, city, country, postcode: String(10_117 + index * 631) }
    const { id } = await api.call('createOrganization', {
      name: organization,
      address,
      user_id: userId,
      tag_ids: [pick(tagIds, index % 3)],
    })
    for (const [place, entry] of people.entries()) {
      const [name = '', job = ''] = entry.split('|')
      const email = `${asciiName(name)}@${domain}`
      const person = await api.call('createPerson', {
        name,
        job_title: job,
        organization_id: id,
        user_id: userId,
        emails: [{ value: email, label: 'work' }],
        contact_numbers: [{ value: `+44 20 7946 0${String(index * 10 + place).padStart(3, '0')}`, label: 'work' }],
      })
      contacts.push({ id: person.id, name, email, organization, organizationId: id, address })
    }
  }
  return contacts
}

/** Plans one lead from its first contact to its end, or to the present. */
function planLead(cast: Cast, index: number, beginning: number): void {
  const contact = pick(cast.contacts, index * 7 + 3)
  const seller = pick(cast.team, index * 5 + 1)
  const { api } = seller
  const lines = linesOf(index)
  const value = lines.reduce((sum, { quantity, price }) => sum + quantity * price, 0)
  const main = demoProducts[lines[0]?.index ?? 0]
  const title = `${lines[0]?.quantity} × ${main?.name} for ${contact.organization}`
  const first = beginning + (1 + (index * (storyDays - 3)) / leadCount) * dayMs
  const plan = (day: number, run: () => Promise<unknown>): void =>
    void cast.steps.push({ at: workingHour(first + day * dayMs, index), run })
  let lead = 0
  let sent: { id: number; message_id?: string | null } | undefined
  const move = (day: number, to: number, more: object = {}): void =>
    plan(day, () => api.call('moveLead', { lead_pipeline_stage_id: to, ...more }, lead))

  plan(0, async () => {
    const created = await api.call('createLead', {
      title,
      lead_value: value,
      person_id: contact.id,
      user_id: seller.id,
      lead_source_id: 1 + (index % 5),
      lead_type_id: index % 3 === 0 ? 2 : 1,
      expected_close_date: dateOf(first + 40 * dayMs),
      products: lines.map(({ index: at, quantity, price }) => ({
        product_id: pick(cast.productIds, at),
        quantity,
        price,
      })),
      tag_ids: [pick(cast.tagIds, index)],
      description: pick(notes, index + 2),
    })
    lead = created.id
  })
  planTalk(cast, { plan, api, contact, seller, index, lead: () => lead })
  plan(2, async () => {
    const body = { subject: title, html: letterTo(contact, seller.name, main?.name ?? ''), to: [contact.email] }
    sent = await api.call('createEmail', { ...body, lead_id: lead, person_id: contact.id })
  })
  if (index % 3 !== 2)
    plan(3, () =>
      postMail(cast.app, cast.inboundSecret, {
        from: `${contact.name} <${contact.email}>`,
        to: `${seller.name} <sales@brightwater.example>`,
        subject: `Re: ${title}`,
        text: `${pick(questions, index)}\n\nKind regards\n${contact.name}`,
        headers: `Message-ID: <reply-${index}@${contact.email.split('@')[1]}>\nIn-Reply-To: <${sent?.message_id ?? ''}>`,
      }),
    )
  move(4, stage.followUp)
  move(9, stage.prospect)
  plan(12, () => quoteFor(cast, { index, title, contact, seller, lines, lead }))
  move(14, stage.negotiation)
  if (index % 4 === 1) move(20, stage.lost, { lost_reason: pick(lostReasons, index) })
  else if (index % 4 !== 3) move(24, stage.won)
}

interface Talk {
  plan: (day: number, run: () => Promise<unknown>) => void
  api: Api
  contact: Contact
  seller: { id: number }
  index: number
  lead: () => number
}

/** Plans the calls, notes and meetings of a lead. */
function planTalk(cast: Cast, { plan, api, contact, seller, index, lead }: Talk): void {
  const about = () => ({ lead_ids: [lead()], person_ids: [contact.id], user_id: seller.id })
  /**
   * Creates an activity that begins `ahead` days after the step. Most past activities are done; a
   * few are overdue.
   */
  const meet = (type: 'call' | 'meeting' | 'lunch', title: string, ahead: number, hours: number) => {
    const from = workingHour(currentOf(cast) + ahead * dayMs, index + 4)
    const to = from + hours * hourMs
    return api.call('createActivity', {
      type,
      title,
      schedule_from: new Date(from).toISOString(),
      schedule_to: new Date(to).toISOString(),
      is_done: to < cast.now.getTime() && index % 9 !== 4,
      allow_overlap: true,
      location: type === 'call' ? null : contact.organization,
      // Only meetings have participants, because each participant gets an e-mail.
      ...(type === 'meeting' && { participants: { users: [seller.id], persons: [contact.id] } }),
      ...about(),
    })
  }
  plan(1, () => meet('call', `First call with ${contact.name}`, 0, 0.5))
  plan(1.1, () => api.call('createActivity', { type: 'note', comment: pick(notes, index), ...about() }))
  plan(6, () => meet('meeting', `On-site visit at ${contact.organization}`, 2, 1.5))
  if (index % 4 === 0) plan(10, () => meet('lunch', `Lunch with ${contact.name}`, 3, 1))
  plan(16, () => meet('call', `Follow up on the quote with ${contact.name}`, 5, 0.5))
}

const currentOf = ({ app }: Cast): number => app.services.clock.now().getTime()

interface QuotePlan {
  index: number
  title: string
  contact: Contact
  seller: { id: number; api: Api }
  lines: Line[]
  lead: number
}

async function quoteFor(cast: Cast, { index, title, contact, seller, lines, lead }: QuotePlan): Promise<void> {
  const expires = currentOf(cast) + 30 * dayMs
  await seller.api.call('createQuote', {
    subject: title,
    person_id: contact.id,
    user_id: seller.id,
    lead_id: lead,
    billing_address: contact.address,
    expiry_date: dateOf(expires),
    status: 'sent',
    discount_percent: index % 3 === 0 ? 5 : 0,
    items: lines.map(({ index: at, quantity, price }) => ({ product_id: pick(cast.productIds, at), quantity, price })),
  })
}

/** Plans a campaign to all persons about a trade fair, which runs on the day of the fair. */
function planCampaign(cast: Cast): void {
  const at = workingHour(cast.now.getTime() - 18 * dayMs, 0)
  let campaign = 0
  cast.steps.push({
    at: at - 3 * dayMs,
    run: async () => {
      const template = await cast.boss.call('createEmailTemplate', {
        name: 'Trade fair',
        subject: 'Meet us at AquaTech',
        content:
          '<p>Dear {%persons.name%},</p><p>we show the new gateway GW1 in hall 4, stand 12. Will you visit us?</p>',
      })
      const event = { name: 'AquaTech trade fair', description: 'Hall 4, stand 12.', date: dateOf(at) }
      const { id } = await cast.boss.call('createMarketingEvent', event)
      const created = await cast.boss.call('createCampaign', {
        name: 'Invitation to AquaTech',
        subject: 'Meet us at AquaTech, {%persons.name%}',
        is_active: true,
        email_template_id: template.id,
        marketing_event_id: id,
      })
      campaign = created.id
    },
  })
  cast.steps.push({ at, run: () => cast.boss.call('runCampaign', undefined as never, campaign) })
}

/** The form fields by attribute id. Built-in attributes have the same ids in every installation. */
const formFields: readonly [id: number, label: string][] = [
  [10, 'Your name'],
  [11, 'Your e-mail address'],
  [1, 'What do you measure?'],
  [3, 'Your budget'],
]

/** Plans a web form and three submissions. */
function planForm(cast: Cast): void {
  const begin = cast.now.getTime() - 30 * dayMs
  let formId = ''
  cast.steps.push({
    at: begin,
    run: async () => {
      const form = await cast.boss.call('createWebForm', {
        title: 'Ask for a quote',
        description: 'We answer within one working day.',
        submit_button_label: 'Send',
        submit_success_action: 'message',
        submit_success_content: 'Thank you. We will be in touch.',
        create_lead: true,
        attributes: formFields.map(([id, name]) => ({ attribute_id: id, name })),
      })
      formId = String(form.form_id)
    },
  })
  const visitors = ['Paula Reyes', 'Ben Whitaker', 'Yara Haddad']
  for (const [index, name] of visitors.entries())
    cast.steps.push({
      at: workingHour(begin + (4 + index * 11) * dayMs, index + 2),
      run: () =>
        submitForm(cast.app, formId, {
          persons: { name, emails: [{ value: `${asciiName(name)}@visitors.example`, label: 'work' }] },
          leads: { title: `Question about ${demoProducts[index]?.name}`, lead_value: 1500 + 700 * index },
        }),
    })
}

/** Plans a webhook for the last six days, so that the catcher has webhooks to show. */
const planWebhook = (cast: Cast): void =>
  void cast.steps.push({
    at: cast.now.getTime() - 6 * dayMs,
    run: () =>
      cast.boss.call('createWebhook', {
        name: 'Demo catcher',
        url: cast.webhookUrl,
        events: ['lead.*.after', 'quote.create.after', 'contacts.person.create.after'],
      }),
  })

interface Line {
  /** The index in `demoProducts`. */
  index: number
  quantity: number
  price: number
}

function linesOf(index: number): Line[] {
  const sensor = index % 4
  const line = (at: number, quantity: number): Line => ({ index: at, quantity, price: demoProducts[at]?.price ?? 0 })
  return [
    line(sensor, 2 + ((index * 3) % 11)),
    ...(index % 2 === 0 ? [line(4, 1 + (index % 3))] : []),
    ...(index % 3 === 0 ? [line(5, 1)] : []),
    ...(index % 7 === 0 ? [line(6, 1)] : []),
  ]
}

const letterTo = ({ name }: Contact, seller: string, product: string): string =>
  `<p>Dear ${name},</p><p>thank you for your interest in our ${product}. I attach the outline of an offer below and would like to hear what you measure today.</p><p>Kind regards<br>${seller}<br>Brightwater Instruments</p>`
