// A company of eight users: an administrator, a manager, an accountant, four representatives in two
// groups, and a clerk. Two pipelines, one form, three products.
import type { Caller, Reply, TestServer } from '../../support/app.ts'
import { addUser } from '../../support/viewers.ts'

export type User = Caller & { id: number; name: string }

const seller = [
  ...['leads', 'leads.view', 'leads.create', 'leads.edit', 'leads.delete'],
  ...['quotes', 'quotes.create', 'quotes.edit', 'quotes.print'],
  ...['activities', 'activities.create', 'activities.edit'],
  ...['contacts', 'contacts.persons', 'contacts.persons.view', 'contacts.persons.create', 'contacts.persons.edit'],
  ...['contacts.organizations', 'contacts.organizations.create'],
  ...['mail', 'mail.inbox', 'mail.view', 'mail.compose', 'products', 'dashboard'],
]
const bookkeeper = ['quotes', 'quotes.print', 'dashboard', 'leads', 'leads.view']
const clerk = ['leads', 'leads.view', 'activities', 'activities.create', 'contacts.persons.view']

export const representatives = ['Rita', 'Sam', 'Tom', 'Uwe'] as const
export type Representative = (typeof representatives)[number]

/** Returns the data of a reply. Throws unless its status is below 300. */
export function must(reply: Reply): any {
  if (reply.status >= 300) throw new Error(`${reply.status} ${reply.text}`)
  return reply.body?.data
}

export async function openCompany(server: TestServer) {
  const { admin } = server
  const user = async (name: string, about: Parameters<typeof addUser>[2]): Promise<User> => ({
    ...(await addUser(server, name, about)),
    name,
  })
  const sales = {
    Rita: await user('Rita', { permissions: seller, view: 'individual', group: 'North' }),
    Sam: await user('Sam', { permissions: seller, view: 'individual', group: 'North' }),
    Tom: await user('Tom', { permissions: seller, view: 'group', group: 'South' }),
    Uwe: await user('Uwe', { permissions: seller, view: 'individual', group: 'South' }),
  }
  const service = must(
    await admin.post('/pipelines', {
      name: 'Service contracts',
      stages: [
        { name: 'Visit', probability: 30 },
        { name: 'Offer', probability: 60 },
      ],
    }),
  )
  const standard = must(await admin.get('/pipelines?sort=id'))[0]
  const products = []
  for (const [sku, price] of [
    ['PUMP', 1299.9],
    ['FILTER', 49.5],
    ['HOUR', 95],
  ] as const)
    products.push(must(await admin.post('/products', { sku, name: `Product ${sku}`, price })))
  return {
    admin,
    ...sales,
    sales,
    Mara: await user('Mara', { view: 'global' }),
    Karl: await user('Karl', { permissions: bookkeeper, view: 'global' }),
    Vera: await user('Vera', { permissions: clerk, view: 'individual' }),
    pipelines: { standard, service },
    products,
    stage(pipeline: { stages: { code: string; id: number }[] }, code: string): number {
      const found = pipeline.stages.find((stage) => stage.code === code)
      if (!found) throw new Error(`No stage ${code}.`)
      return found.id
    },
  }
}

export type Company = Awaited<ReturnType<typeof openCompany>>
