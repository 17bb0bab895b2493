// The columns and joins of a lead on the limit server, and the conversion of a row to an object.

export const scale = 10_000
const dayMs = 24 * 60 * 60 * 1000

export type Cells = (string | number | null)[]

export interface Tag {
  id: number
  name: string
  color: string
}

export const columns = `l.id, l.title, l.description, l.lead_value, l.status, l.lost_reason, l.closed_at, l.expected_close_date,
  l.stage_changed_at, l.user_id, u.name, u.email, l.person_id, p.name, p.emails, o.id, o.name, l.lead_source_id, s.name,
  l.lead_type_id, t.name, l.lead_pipeline_id, pl.name, pl.rotten_days, l.lead_pipeline_stage_id, st.code, st.name,
  st.probability, st.sort_order, l.custom_attributes, l.created_at, l.updated_at, l.version,
  (select count(*) from lead_quotes where lead_id = l.id),
  (select count(*) from lead_activities where lead_id = l.id),
  (select count(*) from emails where lead_id = l.id), l.touched_at`
export const contacts = `left join persons p on p.id = l.person_id left join organizations o on o.id = p.organization_id`
export const joins = `join lead_sources s on s.id = l.lead_source_id join lead_types t on t.id = l.lead_type_id
  join lead_pipelines pl on pl.id = l.lead_pipeline_id join lead_pipeline_stages st on st.id = l.lead_pipeline_stage_id
  left join users u on u.id = l.user_id ${contacts}`

export function presentRow(row: Cells, now: number) {
  const [id, title, description, value, status, lost_reason, closed_at, expected_close_date] = row
  const [stage_changed_at, user_id, userName, userEmail, person_id, personName, personEmails] = row.slice(8)
  const [organizationId, organizationName, lead_source_id, sourceName, lead_type_id, typeName] = row.slice(15)
  const [lead_pipeline_id, pipelineName, rottenDays, lead_pipeline_stage_id, code, stageName] = row.slice(21)
  const [probability, sort_order, custom, created_at, updated_at, version, quotes, activities, emails] = row.slice(27)
  const due = Date.parse(row[36] as string) + (rottenDays as number) * dayMs
  const rotten = status === 1 ? Math.max(0, Math.trunc((now - due) / dayMs)) : 0
  const { region = null, seats } = JSON.parse(custom as string) as { region?: string; seats?: number }
  return {
    id: id as number,
    title,
    description,
    lead_value: (value as number) / scale,
    status,
    lost_reason,
    closed_at,
    expected_close_date,
    rotten_days: rotten,
    is_rotten: rotten > 0,
    stage_changed_at,
    user_id,
    user: user_id === null ? null : { id: user_id, name: userName, email: userEmail, image_url: null },
    person_id,
    person:
      person_id === null
        ? null
        : { id: person_id, name: personName, email: JSON.parse(personEmails as string)[0]?.value ?? null },
    organization: organizationId === null ? null : { id: organizationId, name: organizationName },
    lead_source_id,
    source: { id: lead_source_id, name: sourceName },
    lead_type_id,
    type: { id: lead_type_id, name: typeName },
    lead_pipeline_id,
    pipeline: { id: lead_pipeline_id, name: pipelineName },
    lead_pipeline_stage_id,
    stage: { id: lead_pipeline_stage_id, code, name: stageName, probability, sort_order },
    tags: [] as Tag[],
    products: [] as Record<string, unknown>[],
    products_amount: 0,
    quotes_count: quotes,
    activities_count: activities,
    emails_count: emails,
    custom_attributes: { region, seats: seats === undefined ? null : seats / scale },
    external_ids: {},
    created_at,
    updated_at,
    version: version as number,
  }
}
