// Loads the sales data set into a running server through its API: accounts become organizations
// with one contact each, teams become groups and users, and opportunities become leads, which are
// then moved to their stages.
import { randomBytes } from 'node:crypto'
import { type Api, forEach, must } from './api.ts'
import { attributesOf, defineAttributes } from './attributes.ts'
import { type Opportunity, type Sales, type StageCode, slug } from './data.ts'
import { type Ids, idIn, moveToStages, type Report } from './moves.ts'

export interface Loaded {
  pipelineId: number
  counts: Record<'groups' | 'users' | 'organizations' | 'persons' | 'products' | 'leads', number>
}

export class AlreadyLoaded extends Error {}

const pipelineName = 'Sales'

/** The permissions of an agent: full access to leads, contacts and activities, and no settings. */
const salesPermissions = [
  'dashboard' as const,
  ...(['leads', 'contacts.persons'] as const).flatMap(
    (area) => [area, `${area}.create`, `${area}.view`, `${area}.edit`, `${area}.delete`] as const,
  ),
  ...(['contacts.organizations', 'quotes', 'activities'] as const).flatMap(
    (area) => [area, `${area}.create`, `${area}.edit`, `${area}.delete`] as const,
  ),
  'products.view' as const,
]

/**
 * Loads the data set. Throws AlreadyLoaded before any write when the server already has it or a
 * part of it.
 */
export async function loadSales(api: Api, sales: Sales, report: Report): Promise<Loaded> {
  await refuseSecondLoad(api)
  /** Creates a record for each item and returns the ids by name. */
  const create = async <T>(
    step: string,
    items: readonly T[],
    nameOf: (item: T) => string,
    work: (item: T) => Promise<{ data: { id: number } }>,
  ): Promise<Ids> => {
    report(step, 0, items.length)
    const replies = await forEach(items, work, (done) => report(step, done, items.length))
    return new Map(items.map((item, index) => [nameOf(item), replies[index]?.data.id ?? 0]))
  }

  // The pipeline is created first, because a second load checks for it.
  const { pipelineId, stages } = await createPipeline(api)
  const { data: role } = await must(
    api.POST('/api/admin/settings/roles', {
      body: { name: 'Sales', permission_type: 'custom', permissions: salesPermissions },
    }),
  )
  const options = await defineAttributes(api, sales, report)
  const offices = [...new Set(sales.agents.map(({ office }) => office))]
  const groups = await create(
    'groups',
    offices,
    (name) => name,
    (name) => must(api.POST('/api/admin/settings/groups', { body: { name, description: `Regional office ${name}` } })),
  )
  const users = await create(
    'users',
    peopleOf(sales),
    ({ name }) => name,
    ({ name, office }) => {
      // The password is not stored. To sign in as an agent, an administrator must set another
      // password.
      const password = randomBytes(24).toString('base64url')
      const who = { name, email: `${slug(name, '.')}@sales.example`, password, password_confirmation: password }
      return must(
        api.POST('/api/admin/settings/users', {
          body: { ...who, role_id: role.id, view_permission: 'group', group_ids: [idIn(groups, office)] },
        }),
      )
    },
  )
  const owners = ownersOf(sales)
  const ownerOf = (account: string): { user_id?: number } => {
    const agent = owners.get(account)
    return agent === undefined ? {} : { user_id: idIn(users, agent) }
  }
  const organizations = await create(
    'organizations',
    sales.accounts,
    ({ name }) => name,
    (account) => {
      const { name, country } = account
      const custom_attributes = attributesOf(account, options)
      return must(
        api.POST('/api/admin/contacts/organizations', {
          body: { name, address: { country }, custom_attributes, ...ownerOf(name) },
        }),
      )
    },
  )
  const persons = await create(
    'persons',
    sales.accounts,
    ({ name }) => name,
    ({ name }) =>
      must(
        api.POST('/api/admin/contacts/persons', {
          body: {
            name: `Buyer at ${name}`,
            emails: [{ value: `buyer@${slug(name)}.example`, label: 'work' }],
            organization_id: idIn(organizations, name),
            ...ownerOf(name),
          },
        }),
      ),
  )
  const products = await create(
    'products',
    sales.products,
    ({ sku }) => sku,
    ({ sku, name, price, series }) =>
      must(api.POST('/api/admin/products', { body: { sku, name, price, description: `Series ${series}` } })),
  )
  const leads = await create(
    'leads',
    sales.opportunities,
    ({ id }) => id,
    (deal) => {
      const value = deal.closeValue ?? deal.product.price
      const about = {
        title: titleOf(deal),
        description: descriptionOf(deal),
        lead_value: value,
        lead_pipeline_id: pipelineId,
        user_id: idIn(users, deal.agent),
      }
      const person = deal.account === null ? {} : { person_id: idIn(persons, deal.account) }
      return must(
        api.POST('/api/admin/leads', {
          body: {
            ...about,
            ...person,
            products: [{ product_id: idIn(products, deal.product.sku), quantity: 1, price: value }],
          },
        }),
      )
    },
  )
  await moveToStages(api, sales, leads, stages, report)
  const counts = {
    groups: groups.size,
    users: users.size,
    organizations: organizations.size,
    persons: persons.size,
    products: products.size,
    leads: leads.size,
  }
  return { pipelineId, counts }
}

async function refuseSecondLoad(api: Api): Promise<void> {
  const { data } = await must(api.GET('/api/admin/pipelines', { params: { query: { name: [pipelineName] } } }))
  const [pipeline] = data
  if (!pipeline) return
  throw new AlreadyLoaded(
    `The pipeline ${pipeline.name} is there already, with ${pipeline.leads_count} leads: this data set was loaded before, or a part of it. Load it into a new installation.`,
  )
}

async function createPipeline(api: Api): Promise<{ pipelineId: number; stages: Ids }> {
  const stages = [
    { code: 'new', name: 'Prospecting', probability: 10 },
    { code: 'engaging', name: 'Engaging', probability: 50 },
    { code: 'won', name: 'Won' },
    { code: 'lost', name: 'Lost' },
  ] satisfies { code: StageCode; name: string; probability?: number }[]
  const { data } = await must(api.POST('/api/admin/pipelines', { body: { name: pipelineName, stages } }))
  return { pipelineId: data.id, stages: new Map(data.stages.map(({ code, id }) => [code, id])) }
}

/** Returns the distinct agents and managers with their offices. */
function peopleOf({ agents }: Sales): { name: string; office: string }[] {
  const all = agents.flatMap(({ name, manager, office }) => [
    { name: manager, office },
    { name, office },
  ])
  return [...new Map(all.map((person) => [person.name, person])).values()]
}

/**
 * Returns the owner of each account: the agent with most of its opportunities, because the files
 * have no owners.
 */
function ownersOf({ opportunities }: Sales): Map<string, string> {
  const counts = new Map<string, Map<string, number>>()
  for (const { account, agent } of opportunities) {
    if (account === null) continue
    const agents = counts.get(account) ?? new Map<string, number>()
    counts.set(account, agents.set(agent, (agents.get(agent) ?? 0) + 1))
  }
  return new Map(
    [...counts].map(([account, agents]) => [account, [...agents].sort(([, a], [, b]) => b - a)[0]?.[0] ?? '']),
  )
}

const titleOf = ({ id, product, account }: Opportunity): string =>
  account === null ? `${id} ${product.name}` : `${id} ${product.name} for ${account}`

const descriptionOf = ({ id, engagedOn }: Opportunity): string =>
  engagedOn === null ? `Opportunity ${id}` : `Opportunity ${id}, engaged on ${engagedOn}`
