import {
  CONFIRM_BY,
  createProduct,
  getProduct,
  listProducts,
  type Product,
  updateProduct,
  VERSION_SCHEMES,
} from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { plainText, productNameSchema, SOME_CHANGE, timeSchema } from "../http/schemas.ts";
import { timeZoneSchema } from "./device-view.ts";
import { pageBody, pageFields, pageSchema } from "./page.ts";
import { timeoutsSchema } from "./rollout-fields.ts";

const scheme = z.enum(VERSION_SCHEMES).meta({
  description:
    "How versions are written and ordered: semver, or dotted numbers (1.0 equals 1.0.0). Fixed from the product's creation on.",
});
const confirmBy = z.enum(CONFIRM_BY).meta({
  description:
    "What makes an upgrade succeed: the device's word (`report`), or the new version that it reports (`version`). " +
    "Fixed from the product's creation on.",
});
const pollIntervalSeconds = z.int().min(30).max(86_399).meta({
  description: "How often a device is to ask. Each one is given its own phase within the interval.",
});

const timeZone = timeZoneSchema.meta({
  description: "Where a device is that has no time zone of its own.",
  example: "Europe/Berlin",
});
const attemptSettings = {
  maxAttempts: z.int().min(1).max(100).meta({
    description:
      "How often a firmware is tried on a device until an operator resets the upgrade, unless the rollout says.",
  }),
  backoffSeconds: z.int().min(0).max(31_622_400).meta({
    description: "The pause after an upgrade's first attempt; it doubles with each further one, up to a day.",
  }),
  timeoutsSeconds: timeoutsSchema.meta({
    description:
      "After how many seconds of silence an attempt is ended, by its state. null: never. A state that is left out: 30 days " +
      "while consent is awaited, 7 days for an offer, a day for the others.",
  }),
};

const attributeName = plainText(128).min(1).nullable();
const attributeNames = {
  hardwareAttribute: attributeName.meta({
    description: "The attribute by which DDI devices tell their hardware revision; null: none.",
    example: "board",
  }),
  versionAttribute: attributeName.meta({
    description: "The attribute by which DDI devices tell the version that they run; null: none.",
    example: "fw_version",
  }),
};

/** What operators see of a product. */
export const productSchema = z
  .object({
    name: productNameSchema,
    versionScheme: scheme,
    confirmBy,
    pollIntervalSeconds,
    timeZone,
    ...attemptSettings,
    ...attributeNames,
    signingPublicKey: z
      .string()
      .nullable()
      .meta({ description: "The base64 of the Ed25519 public key of its firmware; null: unsigned firmware will do." }),
    catalogRevision: z.string().meta({ description: "Grows with every change of what devices can be offered." }),
    createdAt: timeSchema,
  })
  .meta({ id: "Product" });

const newProductSchema = z
  .strictObject({
    name: productNameSchema.meta({ example: "prime-hub" }),
    versionScheme: scheme.optional().meta({ override: { default: "semver" } }),
    confirmBy: confirmBy.optional().meta({ override: { default: "version" } }),
    pollIntervalSeconds: pollIntervalSeconds.optional().meta({ override: { default: 300 } }),
    timeZone: timeZone.optional().meta({ override: { default: "UTC" } }),
    maxAttempts: attemptSettings.maxAttempts.optional().meta({ override: { default: 3 } }),
    backoffSeconds: attemptSettings.backoffSeconds.optional().meta({ override: { default: 600 } }),
    timeoutsSeconds: attemptSettings.timeoutsSeconds.optional(),
    hardwareAttribute: attributeNames.hardwareAttribute.optional(),
    versionAttribute: attributeNames.versionAttribute.optional(),
  })
  .meta({ id: "NewProduct" });

const productChangesSchema = z
  .strictObject({ pollIntervalSeconds, timeZone, ...attemptSettings, ...attributeNames })
  .partial()
  .refine((changes) => Object.keys(changes).length > 0, SOME_CHANGE)
  .meta({ id: "ProductChanges" });

/** Products: lines of devices that share firmware. */
export const productRoutes: readonly RouteDefinition[] = [
  defineRoute({
    method: "POST",
    path: "/v1/products",
    operationId: "createProduct",
    summary: "Create a product",
    tag: "Products",
    auth: "operator",
    request: { body: { kind: "json", schema: newProductSchema } },
    responses: { 201: { description: "Created", body: productSchema, headers: { Location: "Where the product is." } } },
    problems: ["ALREADY_EXISTS", "INVALID_FIELD"],
    async handler({ actor, body }, { db }) {
      const product = await createProduct(db, { actor, ...body });
      return { status: 201, headers: { Location: `/v1/products/${product.name}` }, body: productView(product) };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/products",
    operationId: "listProducts",
    summary: "List products, newest first",
    tag: "Products",
    auth: "operator",
    request: { query: z.strictObject(pageFields) },
    responses: { 200: { description: "A page of products", body: pageSchema(productSchema) } },
    problems: ["INVALID_CURSOR"],
    async handler({ query }, { db }) {
      return { status: 200, body: pageBody(await listProducts(db, query), productView) };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/products/{product}",
    operationId: "getProduct",
    summary: "Get a product",
    tag: "Products",
    auth: "operator",
    request: { params: z.strictObject({ product: productNameSchema }) },
    responses: { 200: { description: "The product", body: productSchema } },
    problems: ["NOT_FOUND"],
    async handler({ params }, { db }) {
      return { status: 200, body: productView(await getProduct(db, params)) };
    },
  }),
  defineRoute({
    method: "PATCH",
    path: "/v1/products/{product}",
    operationId: "updateProduct",
    summary: "Change how a product's devices ask, and how upgrades are tried on them",
    description:
      "What is absent stays as it is; `timeoutsSeconds` is replaced as a whole, and applies to attempts whose state changes " +
      "from now on.",
    tag: "Products",
    auth: "operator",
    request: {
      params: z.strictObject({ product: productNameSchema }),
      body: { kind: "json", schema: productChangesSchema },
    },
    responses: { 200: { description: "The product as it is now", body: productSchema } },
    problems: ["NOT_FOUND", "INVALID_FIELD"],
    async handler({ actor, params, body }, { db }) {
      return { status: 200, body: productView(await updateProduct(db, { actor, ...params, ...body })) };
    },
  }),
];

/** A product as JSON. */
export function productView(product: Product): z.input<typeof productSchema> {
  const { catalogRevision, createdAt, ...shown } = product;
  return { ...shown, catalogRevision: String(catalogRevision), createdAt: createdAt.toISOString() };
}
