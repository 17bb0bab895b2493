// Reads the figures of the loaded data set in two ways: the sums of the pipeline's stages, and all
// pages of the filtered list of leads.
import { type Api, must } from './api.ts'
import type { Sales, StageCode } from './data.ts'

export interface StageFigures {
  code: string
  name: string
  leads: number
  value: number
}

// Amounts have at most 4 decimals, so the sum of ten-thousandths is exact.
const sum = (amounts: readonly number[]): number =>
  amounts.reduce((total, amount) => total + Math.round(amount * 10_000), 0) / 10_000

/** Computes the figures from the files. */
export function expectedFigures({ opportunities }: Sales): Record<StageCode, Omit<StageFigures, 'code' | 'name'>> {
  const of = (stage: StageCode) => {
    const deals = opportunities.filter((deal) => deal.stage === stage)
    return { leads: deals.length, value: sum(deals.map(({ closeValue, product }) => closeValue ?? product.price)) }
  }
  return { new: of('new'), engaging: of('engaging'), won: of('won'), lost: of('lost') }
}

export async function pipelineFigures(api: Api, pipelineId: number): Promise<StageFigures[]> {
  const { data } = await must(api.GET('/api/admin/pipelines/{id}', { params: { path: { id: pipelineId } } }))
  return data.stages.map(({ code, name, leads_count, lead_value }) => ({
    code,
    name,
    leads: leads_count,
    value: lead_value,
  }))
}

/** Reads the figures from the list: `meta.total` of a filter, and the values on all its pages. */
export async function listFigures(
  api: Api,
  pipelineId: number,
  stageCode: string,
): Promise<{ leads: number; value: number }> {
  const filter = { lead_pipeline_id: [pipelineId], stage_code: [stageCode] }
  const counted = await must(api.GET('/api/admin/leads', { params: { query: { ...filter, per_page: 1 } } }))
  const values: number[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: { data: { lead_value: number }[]; meta: { next_cursor?: string | null } } = await must(
      api.GET('/api/admin/leads', {
        params: { query: { ...filter, per_page: 100, cursor, fields: ['id', 'lead_value'] } },
      }),
    )
    values.push(...page.data.map(({ lead_value }) => lead_value))
    cursor = page.meta.next_cursor ?? null
  }
  if (values.length !== counted.meta.total)
    throw new Error(`The list counts ${counted.meta.total} leads in ${stageCode} and shows ${values.length}.`)
  return { leads: values.length, value: sum(values) }
}
