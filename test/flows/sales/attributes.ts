// Adds custom attributes for the columns of accounts that organizations do not have.
import { type Api, must } from './api.ts'
import type { Account, Sales } from './data.ts'
import { type Ids, idIn, type Report } from './moves.ts'

/**
 * Creates the attributes sector, employees and revenue. Returns the option ids of sector by name.
 */
export async function defineAttributes(api: Api, { accounts }: Sales, report: Report): Promise<Ids> {
  const step = (done: number) => report('attributes', done, 3)
  step(0)
  const sectors = [...new Set(accounts.map(({ sector }) => sector))].sort()
  const about = { entity_type: 'organizations' as const }
  const { data } = await must(
    api.POST('/api/admin/settings/attributes', {
      body: { ...about, code: 'sector', name: 'Sector', type: 'select', options: sectors.map((name) => ({ name })) },
    }),
  )
  step(1)
  await must(
    api.POST('/api/admin/settings/attributes', {
      body: { ...about, code: 'employees', name: 'Employees', type: 'text', validation: 'numeric' },
    }),
  )
  step(2)
  await must(
    api.POST('/api/admin/settings/attributes', {
      body: { ...about, code: 'revenue', name: 'Revenue, in millions', type: 'price' },
    }),
  )
  step(3)
  return new Map(data.options.map(({ id, name }) => [name, id]))
}

export const attributesOf = ({ sector, employees, revenue }: Account, options: Ids) => ({
  sector: idIn(options, sector),
  employees: String(employees),
  revenue,
})
