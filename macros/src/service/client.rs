//! The client of a service: a type with the methods of the trait, over any tower service.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ReturnType;

use super::method::Method;
use super::model::Service;
use crate::text;

/// The type `XClient<S>` of a service `X`, with a constant for each method.
pub fn code(service: &Service<'_>) -> TokenStream {
    let (rpc, vis, shared) = (&service.options.rpc, &service.item.vis, &service.shared);
    let (client, parameter) = (service.name("Client"), service.parameter("S"));
    let name = text::name(&service.item.ident);
    let debug_name = client.to_string();
    let doc = format!(
        "Calls the service [`{name}`] of a server, over a channel or any other tower service that \
         takes requests with bodies."
    );
    let constants = service.methods.iter().map(|method| constant(service, method));
    let methods = service.methods.iter().map(|method| function(service, method));
    quote! {
        #[doc = #doc]
        #(#shared)*
        #[allow(dead_code)]
        #vis struct #client<#parameter = #rpc::Channel>(#rpc::Client<#parameter>);

        #(#shared)*
        #[allow(dead_code)]
        impl #client<#rpc::Channel> {
            #(#constants)*
        }

        #(#shared)*
        #[allow(dead_code, non_snake_case, clippy::too_many_arguments)]
        impl<#parameter> #client<#parameter>
        where
            #parameter: #rpc::generated::Service<
                    #rpc::Request<#rpc::Body>,
                    Response = #rpc::Response<#rpc::Body>,
                > + ::core::clone::Clone + ::core::marker::Send + 'static,
            #parameter::Future: ::core::marker::Send,
            #parameter::Error: ::core::convert::Into<
                ::std::boxed::Box<
                    dyn ::std::error::Error + ::core::marker::Send + ::core::marker::Sync,
                >,
            >,
        {
            /// Makes calls over a channel, or another service that takes requests.
            #[must_use]
            #vis fn new(service: #parameter) -> Self {
                Self(#rpc::Client::new(service))
            }

            #(#methods)*
        }

        #(#shared)*
        impl<#parameter: ::core::clone::Clone> ::core::clone::Clone for #client<#parameter> {
            fn clone(&self) -> Self {
                Self(::core::clone::Clone::clone(&self.0))
            }
        }

        #(#shared)*
        impl<#parameter> ::core::fmt::Debug for #client<#parameter> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Formatter::write_str(f, #debug_name)
            }
        }
    }
}

/// The constant for a method.
fn constant(service: &Service<'_>, method: &Method) -> TokenStream {
    let (rpc, vis, codec) = (&service.options.rpc, &service.item.vis, &service.options.codec);
    let (cfgs, constant) = (method.cfgs(), method.constant());
    let (path, schema) = (service.path(method), method.schema(codec));
    let (request, response) = (&method.request.ty, &method.response.ty);
    let idempotent = method.options.idempotent.map(|()| quote!(.idempotent()));
    let doc = format!("The method `{path}`: `{schema}`.");
    quote! {
        #[doc = #doc]
        #(#cfgs)*
        #vis const #constant: #rpc::Method<#request, #response, #codec> =
            #rpc::Method::new(#path).schema(#schema) #idempotent;
    }
}

/// The client's function that calls a method.
fn function(service: &Service<'_>, method: &Method) -> TokenStream {
    let (rpc, vis) = (service.rpc_at(method), &service.item.vis);
    let (shared, kind, constant) = (method.shared(), method.kind(), service.constant(method));
    let (function, answer) = (&method.signature.ident, output(&method.signature.output));
    let parameter = service.parameter("S");
    let names = method.arguments.iter().map(|argument| &argument.name);
    let (generic, declared, request) = match &method.arguments[..] {
        [only] => {
            let name = &only.name;
            match taken(service, method) {
                Taken::Type(ty) => (None, quote!(, #name: #ty), quote!(#name)),
                Taken::Bound(bound) => {
                    let taken = service.parameter("R");
                    (Some((taken.clone(), bound)), quote!(, #name: #taken), quote!(#name))
                }
            }
        }
        several => {
            let types = several.iter().map(|argument| &argument.ty);
            let declared = names.clone();
            (None, quote!(#(, #declared: #types)*), quote!((#(#names),*)))
        }
    };
    let request =
        if method.request.wrapped { request } else { quote!(#rpc::Request::new(#request)) };
    let response = quote_spanned! {method.place()=>
        #rpc::Client::#kind(&self.0, #constant, #request)
    };
    let response = if method.response.wrapped {
        response
    } else {
        quote_spanned! {method.place()=>
            {
                let response = #response;
                async move {
                    ::core::result::Result::map(response.await, #rpc::Response::into_inner)
                }
            }
        }
    };
    let doc = (!method.is_documented()).then(|| {
        let doc = format!("Calls the method `{}`.", service.path(method));
        quote!(#[doc = #doc])
    });
    let generics = generic.as_ref().map(|(taken, bound)| quote!(<#taken: #bound>));
    let captured = generic.as_ref().map(|(taken, _)| quote!(, #taken));
    let future = quote_spanned! {method.place()=>
        impl ::core::future::Future<Output = #answer> + use<#parameter #captured>
    };
    // Not an `async fn`, whose future would borrow the client: a task that calls through a service
    // which is not `Sync` could not be sent to another thread.
    quote! {
        #doc
        #(#shared)*
        #vis fn #function #generics(&self #declared) -> #future {
            #response
        }
    }
}

/// The type of what a function returns.
fn output(output: &ReturnType) -> TokenStream {
    match output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => quote!(#ty),
    }
}

/// The argument of a client's function that takes one.
enum Taken {
    /// The argument has a type.
    Type(TokenStream),
    /// The argument has any type with a bound.
    Bound(TokenStream),
}

/// The type of the only argument that the client's function takes.
fn taken(service: &Service<'_>, method: &Method) -> Taken {
    let rpc = &service.options.rpc;
    let ty = &method.request.ty;
    match (method.request.wrapped, method.request.streams) {
        (false, false) => Taken::Type(quote!(#ty)),
        (true, false) => Taken::Bound(quote!(::core::convert::Into<#rpc::Request<#ty>>)),
        (false, true) => Taken::Bound(quote! {
            #rpc::generated::Stream<Item = #ty> + ::core::marker::Send + 'static
        }),
        (true, true) => Taken::Bound(quote!(#rpc::IntoStreamingRequest<Message = #ty>)),
    }
}
