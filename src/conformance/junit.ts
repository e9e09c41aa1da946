/** The report as JUnit XML, for programs that show test results: one suite per revision and carrier. */
import { addressOf } from './clauses.ts'
import type { Report, Result } from './report.ts'

export function junitOf(report: Report): string {
  const groups = Map.groupBy(report.results, ({ revision, carrier }) => `${revision} over ${carrier}`)
  const suites = [...groups].map(([name, results]) => suite(`${report.server_name} ${name}`, results))
  const { passed, failed, skipped, error } = report.summary
  const tests = passed + failed + skipped + error
  const counts = `tests="${tests}" failures="${failed}" errors="${error}" skipped="${skipped}"`
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="${text(report.server_name)}" ${counts}>\n${suites.join('')}</testsuites>\n`
}

function suite(name: string, results: readonly Result[]): string {
  const count = (status: Result['status']): number => results.filter(result => result.status === status).length
  const counts = `tests="${results.length}" failures="${count('failed')}" errors="${count('error')}" skipped="${count('skipped')}"`
  return `  <testsuite name="${text(name)}" ${counts}>\n${results.map(testcase).join('')}  </testsuite>\n`
}

function testcase(result: Result): string {
  const { test_id, title, revision, carrier, duration_ms } = result
  const place = `classname="${text(`${revision}.${carrier}.${test_id}`)}" name="${text(title)}" time="${duration_ms / 1000}"`
  const inside = outcome(result)
  return inside === '' ? `    <testcase ${place}/>\n` : `    <testcase ${place}>\n${inside}    </testcase>\n`
}

function outcome({ status, message, proves, frames, revision }: Result): string {
  if (status === 'passed') return ''
  if (status === 'skipped') return `      <skipped message="${text(message)}"/>\n`
  const lines = frames.map(frame => `${frame.way === 'out' ? '→' : '←'} ${frame.text}`)
  const kind = status === 'failed' ? 'failure' : 'error'
  const addresses = proves.flatMap(statement => addressOf(statement, revision) ?? [])
  const said = [`Statements: ${proves.join(', ')}`, ...addresses, ...lines].map(text).join('\n')
  return `      <${kind} message="${text(message)}">${said}</${kind}>\n`
}

/** XML has no way to write most control characters, so that they are left out. */
function text(value: string): string {
  return value
    .replace(
      /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
      '',
    )
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
