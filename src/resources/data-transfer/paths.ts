// Paths of an import's downloads, as the contract has them.
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'

export const pathOf = (operation: 'downloadImportFile' | 'downloadImportErrorReport', id: number): string =>
  pathTo(operations[operation], id)
