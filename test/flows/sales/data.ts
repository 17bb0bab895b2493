// Reads the four CSV files of the sales data set, and repairs and counts their known errors. Throws
// for any other error, with the line number.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'csv-parse/sync'

export interface Account {
  name: string
  /** The country code in ISO 3166-1 alpha-2. */
  country: string
  sector: string
  employees: number
  /** The yearly revenue in millions of dollars. */
  revenue: number
}

export interface Product {
  name: string
  sku: string
  series: string
  price: number
}

export interface Agent {
  name: string
  manager: string
  office: string
}

export type StageCode = 'new' | 'engaging' | 'won' | 'lost'

export interface Opportunity {
  id: string
  agent: string
  product: Product
  account: string | null
  stage: StageCode
  /** Dates are `YYYY-MM-DD`. */
  engagedOn: string | null
  closedOn: string | null
  closeValue: number | null
}

export interface Sales {
  accounts: Account[]
  products: Product[]
  agents: Agent[]
  opportunities: Opportunity[]
  /** The repairs, and the number of each. */
  repairs: Map<string, number>
}

export const files = {
  accounts: 'accounts.csv',
  products: 'products.csv',
  teams: 'sales_teams.csv',
  pipeline: 'sales_pipeline.csv',
}
export type Texts = Record<keyof typeof files, string>

const stages: Record<string, StageCode> = { Prospecting: 'new', Engaging: 'engaging', Won: 'won', Lost: 'lost' }

const countries: Record<string, string> = {
  Belgium: 'BE',
  Brazil: 'BR',
  China: 'CN',
  Germany: 'DE',
  Italy: 'IT',
  Japan: 'JP',
  Jordan: 'JO',
  Kenya: 'KE',
  Korea: 'KR',
  Norway: 'NO',
  Panama: 'PA',
  Philippines: 'PH',
  Poland: 'PL',
  Romania: 'RO',
  'United States': 'US',
}

/** Misspellings in the files, and their corrections. */
const misspelt: Record<string, string> = { Philipines: 'Philippines', technolgy: 'technology', GTXPro: 'GTX Pro' }

export const slug = (text: string, between = '-'): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, between)
    .replace(/^\W+|\W+$/g, '')

/** The default folder of the data set, beside the repository. */
export const besideTheRepository = fileURLToPath(new URL('../../../../shared/data/sales', import.meta.url))

/** The names of the files that are missing in the folder. */
export const missingIn = (folder: string): string[] =>
  Object.values(files).filter((name) => !existsSync(join(folder, name)))

export function readSales(folder: string): Sales {
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
  return salesOf({
    accounts: read(files.accounts),
    products: read(files.products),
    teams: read(files.teams),
    pipeline: read(files.pipeline),
  })
}

export function salesOf(texts: Texts): Sales {
  const repairs = new Map<string, number>()
  const repair = (text: string): string => {
    const meant = misspelt[text]
    if (meant === undefined) return text
    const what = `"${text}" read as "${meant}"`
    repairs.set(what, (repairs.get(what) ?? 0) + 1)
    return meant
  }
  const accounts = rowsOf(texts, 'accounts').map((row): Account => {
    const sector = repair(row.text('sector'))
    const location = repair(row.text('office_location'))
    return {
      name: row.text('account'),
      country: countries[location] ?? row.refuse(`office_location ${location} is not a known country`),
      sector,
      employees: row.amount('employees') ?? row.refuse('employees is empty'),
      revenue: row.amount('revenue') ?? row.refuse('revenue is empty'),
    }
  })
  const products = rowsOf(texts, 'products').map((row): Product => {
    const name = row.text('product')
    return {
      name,
      sku: slug(name),
      series: row.text('series'),
      price: row.amount('sales_price') ?? row.refuse('sales_price is empty'),
    }
  })
  const agents = rowsOf(texts, 'teams').map(
    (row): Agent => ({
      name: row.text('sales_agent'),
      manager: row.text('manager'),
      office: row.text('regional_office'),
    }),
  )

  const productsByName = new Map(products.map((product) => [product.name, product]))
  const accountNames = new Set(accounts.map(({ name }) => name))
  const agentNames = new Set(agents.map(({ name }) => name))
  const opportunities = rowsOf(texts, 'pipeline').map((row): Opportunity => {
    const [agent, product, account, stage] = [
      row.text('sales_agent'),
      repair(row.text('product')),
      row.optional('account'),
      row.text('deal_stage'),
    ]
    if (!agentNames.has(agent)) row.refuse(`sales_agent ${agent} is in no team`)
    if (account !== null && !accountNames.has(account)) row.refuse(`account ${account} is unknown`)
    return {
      id: row.text('opportunity_id'),
      agent,
      product: productsByName.get(product) ?? row.refuse(`product ${product} is unknown`),
      account,
      stage: stages[stage] ?? row.refuse(`deal_stage ${stage} is unknown`),
      engagedOn: row.date('engage_date'),
      closedOn: row.date('close_date'),
      closeValue: row.amount('close_value'),
    }
  })
  return { accounts, products, agents, opportunities, repairs }
}

function rowsOf(texts: Texts, name: keyof Texts) {
  const records = parse(texts[name], { columns: true, bom: true, trim: true, skip_empty_lines: true }) as Record<
    string,
    string
  >[]
  return records.map((record, index) => {
    const refuse = (why: string): never => {
      throw new Error(`${files[name]}, row ${index + 1} after the header: ${why}.`)
    }
    const optional = (column: string): string | null => record[column] || null
    return {
      refuse,
      optional,
      text: (column: string): string => optional(column) ?? refuse(`${column} is empty or missing`),
      amount(column: string): number | null {
        const text = optional(column)
        if (text !== null && !/^\d+(\.\d{1,4})?$/.test(text)) refuse(`${column} ${text} is not an amount`)
        return text === null ? null : Number(text)
      },
      /** Parses a date in the format M/D/YYYY of the files. */
      date(column: string): string | null {
        const text = optional(column)
        if (text === null) return null
        const [, month = '', day = '', year = ''] =
          /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/.exec(text) ?? refuse(`${column} ${text} is not a date M/D/YYYY`)
        return `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`
      },
    }
  })
}
