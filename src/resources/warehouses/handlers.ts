// What can be done with warehouses through the API. Their products are listed by the products' slice.
import type { Handlers } from '../../kernel/handler.ts'
import { createTagHandlers } from '../tags/tag-handlers.ts'
import { warehouses } from './resource.ts'

const tags = createTagHandlers('warehouses', warehouses)

export const handlers = {
  listWarehouseTags: tags.list,
  attachWarehouseTag: tags.attach,
  detachWarehouseTag: tags.detach,
} satisfies Partial<Handlers>
