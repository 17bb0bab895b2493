// Creates sample files. A sample has all columns of an import type, including custom
// attributes, and one valid row.
import type { Context } from '../../kernel/context.ts'
import { lines } from '../../kernel/resource/export.ts'
import { builtInColumns, customImportColumns } from './map-columns/columns.ts'
import type { ImportType } from './settings.ts'

const examples: Record<ImportType, Readonly<Record<string, string>>> = {
  persons: {
    name: 'Ada Lovelace',
    emails: 'ada@example.com:work|ada@home.example.com:home',
    contact_numbers: '+44 20 7946 0000:work',
    organization_id: '',
    organization_name: 'Analytical Ltd',
    job_title: 'Engineer',
    user_id: '',
    tags: 'VIP|London',
  },
  organizations: {
    name: 'Analytical Ltd',
    'address.address': '12 Analytical Way',
    'address.country': 'GB',
    'address.state': '',
    'address.city': 'London',
    'address.postcode': 'W1 2AB',
    user_id: '',
  },
  products: { sku: 'gtx-pro', name: 'GTX Pro', description: '', quantity: '40', price: '4821' },
  leads: {
    id: '',
    title: '40 seats for Analytical Ltd',
    description: '',
    lead_value: '9642',
    lost_reason: '',
    closed_at: '',
    user_id: '',
    person_id: '',
    person_email: 'ada@example.com',
    lead_source_id: '',
    lead_type_id: '',
    lead_pipeline_id: '',
    lead_pipeline_stage_id: '',
    expected_close_date: '',
    product: 'id=2,price=4821,quantity=2',
    tags: 'VIP',
  },
}

export async function sampleOf(ctx: Context, type: ImportType): Promise<string> {
  const all = [...builtInColumns(ctx.services.contract, type), ...(await customImportColumns(ctx, type))]
  const header = [...new Set([...Object.keys(examples[type]), ...all.map(({ name }) => name)])]
  return lines([header, header.map((name) => (Object.hasOwn(examples[type], name) ? examples[type][name] : '') ?? '')])
}
