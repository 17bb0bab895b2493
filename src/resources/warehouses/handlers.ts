// Handlers for the tags of warehouses. The products folder has the list of products of a warehouse.
import type { Handlers } from '../../kernel/handler.ts'
import { createTagHandlers } from '../tags/tag-handlers.ts'
import { warehouses } from './resource.ts'

const tags = createTagHandlers('warehouses', warehouses)

export const handlers = {
  listWarehouseTags: tags.list,
  attachWarehouseTag: tags.attach,
  detachWarehouseTag: tags.detach,
} satisfies Partial<Handlers>
