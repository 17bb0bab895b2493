// Which tables say in what words records are described, and by what words they are found.
/**
 * Every write looks into them, and they hardly ever change: what was read of them in a transaction is kept for the next ones until a
 * statement names one of them (`Store.vocabulary`). What a key does to their rows when a record elsewhere goes is not told.
 */
export const vocabulary = [
  'attribute_options',
  'attributes',
  'lead_pipeline_stages',
  'lead_pipelines',
  'lead_sources',
  'lead_types',
  'tags',
] as const

/** What is written into it leaves a piece of index behind, to be put together with others later. */
export const searchIndex = 'search_index'

export const isReferenceTable = (table: string): boolean => (vocabulary as readonly string[]).includes(table)
