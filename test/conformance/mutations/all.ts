/** Tries mutations with every scenario: `node all.ts [id …]`. Prints who sees each one, and fails where nobody does. */
import { mutations } from './index.ts'
import { tried } from './run.ts'

const wanted = process.argv.slice(2)
let unseen = 0
for (const mutation of mutations.filter(({ id }) => wanted.length === 0 || wanted.includes(id))) {
  const results = await tried(mutation)
  const seen = results.filter(({ status }) => status === 'failed').map(({ test_id }) => test_id)
  if (seen.length === 0) unseen++
  console.log(`${mutation.id}: ${seen.length === 0 ? 'NOT SEEN' : seen.join(' ')}`)
}
console.log(`${unseen} not seen`)
process.exitCode = unseen === 0 ? 0 : 1
