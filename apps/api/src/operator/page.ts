import type { Page } from "@ota/domain";
import { z } from "zod";
import { plainText } from "../http/schemas.ts";

/** The query fields of every list. */
export const pageFields = {
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(200)
    .optional()
    .meta({
      description: "How many items at most.",
      override: { default: 50 },
    }),
  cursor: plainText(200).optional().meta({ description: "The `nextCursor` of the page before." }),
};

/** The answer of a list: items, newest first, and what leads to the next ones. */
export function pageSchema<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    nextCursor: z.string().nullable().meta({ description: "Leads to the next page; null on the last one." }),
  });
}

/** Makes a list's answer of a page of the domain. */
export function pageBody<Item, View>(page: Page<Item>, toView: (item: Item) => View) {
  return { items: page.items.map(toView), nextCursor: page.nextCursor ?? null };
}
