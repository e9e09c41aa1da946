/** Tools that exist to be called by conformance suites: they have no effects that matter to anybody. */
import type { Json } from './scenario.ts'

/** Fixtures whose names could belong to a real tool: they count only beside those that could not. */
const ordinary = new Set([
  'greet',
  'slow_compute',
  'failing_job',
  'protocol_error_job',
  'confirm_delete',
  'multi_input',
  'json_schema_2020_12_tool',
])

const marks = ['test_simple_text', 'test_tool_with_task', 'test_error_handling']

export function isFixture(name: string, tools: readonly Json[]): boolean {
  if (name.startsWith('test_')) return true
  return ordinary.has(name) && tools.some(tool => marks.includes(String(tool['name'])))
}
