/** Lists every cell of the interop tests and of the cross matrix at the end of a run, one line each. */
import { relative } from 'node:path'
import type { Reporter, TestModule } from 'vitest/node'
import { root } from './files.ts'

const TABLES = /^test\/(interop\/|matrix\/|gateway\/matrix)/
const MARKS = { passed: '✓', failed: '✗', skipped: '-', pending: '?' } as const

interface Cell {
  readonly table: string
  readonly state: keyof typeof MARKS
  readonly name: string
}

export default class CellsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const cells = modules.flatMap(listCells).sort((a, b) => a.table.localeCompare(b.table))
    if (cells.length === 0) return
    const lines = cells.map(({ table, state, name }) => `${MARKS[state]} ${table}  ${name}`)
    const passed = cells.filter(({ state }) => state === 'passed').length
    console.log(['', ...lines, `interop and matrix: ${passed}/${cells.length} cells passed`, ''].join('\n'))
  }
}

function listCells(module: TestModule): Cell[] {
  const path = relative(root, module.moduleId).replaceAll('\\', '/')
  if (!TABLES.test(path)) return []
  const table = path.replace(/^test\//, '').replace(/\.test\.ts$/, '')
  return [...module.children.allTests()].map(test => ({ table, state: test.result().state, name: test.fullName }))
}
