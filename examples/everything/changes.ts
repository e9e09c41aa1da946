/** Tools that change what the server offers, so that clients can hear of it. */
import type { Server } from 'vivarium/server'

export function addChanges(server: Server): void {
  const toggleTool = toggle(() => server.tool('test_dynamic_tool', { description: 'Comes and goes' }, () => 'Here for now'))
  server.tool(
    'test_trigger_tool_change',
    { description: 'Adds a tool, or removes it again' },
    () => `The tool is ${toggleTool()}`,
  )

  const togglePrompt = toggle(() => server.prompt('test_dynamic_prompt', { description: 'Comes and goes' }, () => 'Here for now'))
  server.tool(
    'test_trigger_prompt_change',
    { description: 'Adds a prompt, or removes it again' },
    () => `The prompt is ${togglePrompt()}`,
  )
}

/** Each call makes the thing or removes what the last one made. */
function toggle(add: () => { remove(): void }): () => 'there' | 'gone' {
  let added: { remove(): void } | undefined
  return () => {
    if (added === undefined) {
      added = add()
      return 'there'
    }
    added.remove()
    added = undefined
    return 'gone'
  }
}
