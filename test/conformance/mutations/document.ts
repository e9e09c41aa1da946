/** The list of mutations for readers: docs/conformance-mutations.md. */
import { scenarios } from '../../../src/conformance/index.ts'
import type { Mutation } from './mutation.ts'

const head = `# Mutations

A conformance kit that cannot fail proves nothing. Each line below is one behaviour of the reference server (\`examples/reference\`) that is
broken on purpose, by a box between the server and the kit; the scenarios beside it fail then, and pass without it. \`npm test\` tries each
one with these scenarios. \`node test/conformance/mutations/all.ts [id …]\` (after \`npm run build\`) tries them with all scenarios and says who else sees them.

This file is written by \`VIVARIUM_WRITE=1 npx vitest run test/conformance/mutations/mutations.test.ts\`.
`

/** The whole page. */
export function pageOf(mutations: readonly Mutation[]): string {
  const titles = new Map(scenarios.map(({ id, title }) => [id, title]))
  const named = [...new Set(mutations.flatMap(({ caughtBy }) => caughtBy))].sort()
  const rows = mutations.map(({ id, broken, revision, caughtBy, web }) => [
    id,
    broken,
    `${revision}, ${web === undefined ? 'memory' : 'http'}`,
    caughtBy.map(one => `\`${one}\``).join(' '),
  ])
  return [
    head,
    `${mutations.length} mutations, seen by ${named.length} scenarios.`,
    '',
    ...table(['mutation', 'what is broken', 'tried at', 'caught by'], rows),
    '',
    '## The scenarios that catch them',
    '',
    ...table(
      ['scenario', 'what it sees'],
      named.map(id => [`\`${id}\``, titles.get(id) ?? '']),
    ),
    '',
  ].join('\n')
}

/** As the formatter of this repository would have it. */
function table(columns: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const cells = [columns, ...rows].map(row => row.map(cell => cell.replaceAll('|', '\\|')))
  const widths = columns.map((_, at) => Math.max(...cells.map(row => row[at]?.length ?? 0)))
  const line = (row: readonly string[]): string => `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`
  const [head = [], ...body] = cells
  return [line(head), line(widths.map(width => '-'.repeat(width))), ...body.map(line)]
}
