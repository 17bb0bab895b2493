// Builds the download paths of an import from the contract.
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'

export const downloadPathOf = (operation: 'downloadImportFile' | 'downloadImportErrorReport', id: number): string =>
  pathTo(operations[operation], id)
