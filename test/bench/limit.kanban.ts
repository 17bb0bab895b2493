// Builds the board of the default pipeline for the limit server: one statement for the sums of all
// stages, one per stage for the ids of its first leads, and one for all these leads.
import type { Reader } from './limit.read.ts'

type Stage = [id: number, code: string, name: string, probability: number, sort_order: number]

const scale = 10_000
const size = 10
const dollars = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' })

export function kanban({ prepared, presentIds }: Reader) {
  const stages = prepared(
    'select id, code, name, probability, sort_order from lead_pipeline_stages where lead_pipeline_id = 1 order by sort_order',
  ).all() as Stage[]
  const sums = new Map(
    (
      prepared(
        'select lead_pipeline_stage_id, count(*), sum(lead_value) from leads where lead_pipeline_id = 1 group by lead_pipeline_stage_id',
      ).all() as [number, number, number][]
    ).map(([id, ...sum]) => [id, sum] as const),
  )
  const first = prepared('select id from leads where lead_pipeline_stage_id = ? order by id desc limit 10', 'pluck')
  const ids = stages.map(([id]) => first.all(id) as number[])
  const leads = new Map(presentIds(ids.flat()).map((lead) => [lead.id, lead]))
  const data = stages.map(([id, code, name, probability, sort_order], index) => {
    const [count = 0, sum = 0] = sums.get(id) ?? []
    const shown = (ids[index] ?? []).map((each) => leads.get(each))
    return {
      id,
      code,
      name,
      probability,
      sort_order,
      lead_value: sum / scale,
      formatted_lead_value: dollars.format(sum / scale),
      weighted_value: Math.round((sum * probability) / 100) / scale,
      count,
      leads: {
        data: shown,
        meta: {
          current_page: 1,
          from: count > 0 ? 1 : null,
          last_page: Math.max(1, Math.ceil(count / size)),
          per_page: size,
          to: count > 0 ? shown.length : null,
          total: count,
        },
      },
    }
  })
  const [name, rotten_days] = prepared('select name, rotten_days from lead_pipelines where id = 1').get() as [
    string,
    number,
  ]
  const total = data.reduce((all, { count }) => all + count, 0)
  const sum = [...sums.values()].reduce((all, [, each]) => all + each, 0)
  return { data, pipeline: { id: 1, name, rotten_days }, meta: { total, lead_value: sum / scale } }
}
