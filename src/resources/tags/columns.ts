// The column of tags in a CSV export.
import { listColumn, nameSeparators } from '../../kernel/resource/csv-cells.ts'

export const tagNames = listColumn<{ tags: readonly { name: string }[] }>(
  'tags',
  ({ tags }) => tags.map(({ name }) => name),
  nameSeparators,
)
