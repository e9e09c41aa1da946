/** Prompts: plain, with arguments that complete, with content of every kind, and one that asks back. */
import { image, resource, type Server } from 'vivarium/server'
import { z } from 'zod'
import { pixel } from './assets.ts'

const words = ['paper', 'paris', 'park', 'party', 'pearl']

export function addPrompts(server: Server): void {
  server.prompt('test_simple_prompt', { description: 'A line for the model' }, () => 'This is a simple prompt for testing.')

  server.prompt(
    'test_prompt_with_arguments',
    {
      description: 'A line made of two arguments',
      arguments: {
        arg1: {
          description: 'First test argument',
          required: true,
          complete: value => words.filter(word => word.startsWith(value)),
        },
        arg2: { description: 'Second test argument', required: true },
      },
    },
    ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  )

  server.prompt(
    'test_prompt_with_embedded_resource',
    {
      description: 'A resource, and what to do with it',
      arguments: { resourceUri: { description: 'URI of the resource to embed', required: true } },
    },
    ({ resourceUri }) => [
      { content: resource({ uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' }) },
      'Please process the embedded resource above.',
    ],
  )

  server.prompt('test_prompt_with_image', { description: 'A picture, and what to do with it' }, () => [
    { content: image(pixel) },
    'Please analyze the image above.',
  ])

  server.prompt('test_input_required_result_prompt', { description: 'Asks the user before it answers' }, async (_, ctx) => {
    const schema = z.object({ context: z.string() })
    const answer = await ctx.elicit({ key: 'user_context', message: 'What context should the prompt use?', schema })
    return answer.action === 'accept' ? `Use this context: ${answer.content.context}` : 'Use no context'
  })
}
